//! The layer list of a row: `[('linear', 629, 792540), ('ReLU', 629, 0), …]`.

/// Numbers of a sample in one layer, and of its parameters: more is surely a mistake.
const MOST_ACTIVATIONS: u64 = 1 << 31;
const MOST_PARAMETERS: u64 = 1 << 48;

/// One layer as the generator wrote it down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layer {
    /// Its kind.
    pub kind: String,
    /// Numbers that it gives for a sample.
    pub activations: u64,
    /// Numbers in its parameters.
    pub parameters: u64,
}

/// Reads a list; the error says what was found and where in the text.
pub(super) fn parse(text: &str) -> Result<Vec<Layer>, String> {
    let inside = text
        .trim()
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or_else(|| "a layer list stands in brackets".to_owned())?;
    let mut layers = Vec::new();
    let mut rest = inside.trim_start();
    while !rest.is_empty() {
        let at = inside.len() - rest.len() + 1;
        let wrong = || {
            let shown: String = rest.chars().take(24).collect();
            format!("character {at}: expected ('kind', activations, parameters), found {shown:?}")
        };
        let end = rest.find(')').ok_or_else(wrong)?;
        let tuple = rest[..end].strip_prefix('(').ok_or_else(wrong)?;
        let mut parts = tuple.splitn(3, ',');
        let mut next = || parts.next().map(str::trim).ok_or_else(wrong);
        let kind = next()?.trim_matches(['\'', '"']).to_owned();
        let activations = next()?.parse().map_err(|_| wrong())?;
        let parameters = next()?.parse().map_err(|_| wrong())?;
        if activations > MOST_ACTIVATIONS || parameters > MOST_PARAMETERS {
            return Err(format!("character {at}: no layer is as large as this ({tuple})"));
        }
        layers.push(Layer { kind, activations, parameters });
        rest = rest[end + 1..].trim_start_matches([',', ' ']);
    }
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_as_python_wrote_it() {
        let layers = parse("[('linear', 629, 792540), ('ReLU', 629, 0)]").unwrap();
        assert_eq!(
            layers[0],
            Layer { kind: "linear".into(), activations: 629, parameters: 792_540 }
        );
        assert_eq!(layers.len(), 2);
        assert_eq!(parse("[]").unwrap(), []);
    }

    #[test]
    fn a_broken_list_names_the_place() {
        for text in ["", "[('linear', 3", "[('linear', x, 0)]", "[linear]", "[('a', 1)]"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("[('a', 1, 2), oops]").unwrap_err().contains("found \"oops"));
    }
}
