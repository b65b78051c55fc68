//! One line of a tree.

use super::number;

/// A line `(name): Kind(arguments), 1,024 params`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    pub(super) arguments: &'a str,
    /// As the line says.
    pub(super) parameters: Option<u64>,
    /// Has lines of its own below.
    pub(super) container: bool,
    /// How far the line is indented.
    pub(super) indent: usize,
    /// From 1.
    pub(super) line: usize,
    /// How often it stands there: PyTorch writes equal neighbours once, as `(0-11): 12 x Kind(`.
    pub(super) times: usize,
}

impl Module<'_> {
    /// A number by its name, such as `out_features=10`.
    pub(super) fn argument(&self, name: &str) -> Option<u32> {
        let value = self
            .arguments
            .split(',')
            .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        value.filter(|value| (1..=1 << 24).contains(value))
    }

    /// A number by its place.
    pub(super) fn placed(&self, place: usize) -> Option<u32> {
        let value = self.arguments.split(',').nth(place)?.trim().parse().ok();
        value.filter(|value| (1..=1 << 24).contains(value))
    }

    /// Two sides by their name, such as `kernel_size=(16, 16)`.
    pub(super) fn pair(&self, name: &str) -> Option<(u32, u32)> {
        let (_, rest) = self.arguments.split_once(name)?;
        let (inside, _) = rest.strip_prefix("=(")?.split_once(')')?;
        let (first, second) = inside.split_once(',')?;
        let side =
            |text: &str| text.trim().parse().ok().filter(|side| (1..=1 << 16).contains(side));
        Some((side(first)?, side(second)?))
    }

    /// Whether a layer that zeroes at random does anything.
    pub(super) fn drops(&self) -> bool {
        let rate = self.arguments.split(',').find_map(|part| part.trim().strip_prefix("p="));
        rate.and_then(|rate| rate.parse().ok()).is_none_or(|rate: f64| rate > 0.0)
    }

    /// Features read and written by a matrix product.
    pub(super) fn product(&self) -> Option<(u32, u32)> {
        match self.kind {
            "Linear" | "NonDynamicallyQuantizableLinear" => {
                Some((self.argument("in_features")?, self.argument("out_features")?))
            }
            "Conv1D" => Some((self.argument("nx")?, self.argument("nf")?)),
            _ => None,
        }
    }

    /// Whether a product adds a vector.
    pub(super) fn bias(&self) -> bool {
        self.kind == "Conv1D" || !self.arguments.contains("bias=False")
    }

    pub(super) fn is_norm(&self) -> bool {
        self.kind.ends_with("Norm") && !self.kind.starts_with("BatchNorm")
    }

    /// Parameters that this line alone accounts for; none where it does not tell.
    pub(super) fn own_parameters(&self) -> Option<u64> {
        if self.container {
            return Some(0);
        }
        if let Some(parameters) = self.parameters {
            return Some(parameters);
        }
        if let Some((read, written)) = self.product() {
            let (read, written) = (u64::from(read), u64::from(written));
            return Some(read * written + if self.bias() { written } else { 0 });
        }
        match self.kind {
            "Embedding" => Some(u64::from(self.placed(0)?) * u64::from(self.placed(1)?)),
            "Conv1D" => None,
            "Conv2d" => {
                let (read, written) = (self.placed(0)?, self.placed(1)?);
                let taps =
                    u64::from(self.pair("kernel_size")?.0) * u64::from(self.pair("kernel_size")?.1);
                let weights = u64::from(read).checked_mul(u64::from(written))?.checked_mul(taps)?;
                weights.checked_add(if self.bias() { written.into() } else { 0 })
            }
            _ if self.is_norm() => {
                let sizes = self.arguments.trim_start_matches('(');
                let width = sizes.split([',', ')']).next()?.trim().parse::<u32>().ok()?;
                Some(u64::from(width) * if self.kind.contains("RMS") { 1 } else { 2 })
            }
            _ => Some(0),
        }
    }
}

/// The count behind the bracket that closes the whole tree: `), 1,024 params`.
pub(super) fn closing_count(line: &str) -> Option<u64> {
    number(line.strip_prefix("),")?.trim().strip_suffix("params")?.trim())
}

/// A line that opens a container has no arguments; one that closes it is none.
pub(super) fn read_line(
    line: &str,
    number_of_line: usize,
) -> Option<Result<Module<'_>, (usize, String)>> {
    let trimmed = line.trim_start();
    let rest = trimmed.strip_prefix('(')?;
    let (name, rest) = rest.split_once("): ")?;
    let (kind, after) = rest.split_once('(')?;
    let repeated =
        kind.split_once(" x ").and_then(|(times, kind)| Some((times.parse().ok()?, kind)));
    let (times, kind) = repeated.unwrap_or((1, kind));
    let opened = Module {
        name,
        kind,
        arguments: "",
        parameters: None,
        container: true,
        indent: line.len() - trimmed.len(),
        line: number_of_line,
        times,
    };
    if after.trim().is_empty() {
        return Some(Ok(opened));
    }
    let column = line.chars().count() - after.chars().count() + 1;
    let Some((arguments, tail)) = after.rsplit_once(')') else {
        return Some(Err((column, format!("the arguments of {kind} are never closed"))));
    };
    let counted = tail.trim_start_matches(',').trim().strip_suffix("params");
    let parameters = counted.map(|count| number(count.trim()));
    Some(match parameters {
        Some(None) => Err((column, format!("expected a number of params after {kind}"))),
        parameters => {
            Ok(Module { arguments, parameters: parameters.flatten(), container: false, ..opened })
        }
    })
}
