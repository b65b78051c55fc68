//! Which words an operation takes. A word that it does not read would be a wrong estimate without a hint.

use super::TextError;
use super::call::Call;
use crate::graph::Activation;

/// Kernels, strides, paddings and groups beyond this are slips of the pen.
const LARGEST_OPTION: u32 = 4096;

/// How many results of other lines an operation reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inputs {
    One,
    Two,
    OneOrThree,
    Any,
}

/// What may follow an operation's name.
struct Taken {
    /// Words at the beginning that stand by their place.
    placed: usize,
    /// Letters with a number, such as k3.
    letters: &'static str,
    /// Words that stand for themselves.
    words: &'static [&'static str],
    inputs: Inputs,
    /// May overwrite its argument.
    in_place: bool,
}

impl Taken {
    const fn new(placed: usize, letters: &'static str, words: &'static [&'static str]) -> Self {
        Taken { placed, letters, words, inputs: Inputs::One, in_place: false }
    }

    fn by(name: &str) -> Option<Self> {
        let plain = Taken::new(0, "", &[]);
        Some(match name {
            "conv" | "deconv" => Taken::new(1, "kspg", &["nobias"]),
            "dwconv" => Taken::new(0, "ksp", &["nobias"]),
            "linear" => Taken::new(1, "", &["nobias", "tied"]),
            "maxpool" | "avgpool" => Taken::new(0, "ksp", &["ceil"]),
            "adaptive" | "upsample" | "select" | "loss" => Taken::new(1, "", &[]),
            "embedding" => Taken::new(2, "", &[]),
            "attention" => {
                Taken { inputs: Inputs::OneOrThree, ..Taken::new(1, "", &["eager", "nodropout"]) }
            }
            "add" => Taken { inputs: Inputs::Two, in_place: true, ..plain },
            "mul" => Taken { inputs: Inputs::Two, ..plain },
            "concat" => Taken { inputs: Inputs::Any, ..plain },
            "dropout" => Taken { in_place: true, ..plain },
            "bn" | "frozenbn" | "ln" | "rmsnorm" | "gap" | "flatten" | "copy" | "position" => plain,
            // A flag's words are for people.
            "flag" => Taken::new(usize::MAX, "", &[]),
            name => {
                Activation::from_name(name)?;
                Taken { in_place: true, ..plain }
            }
        })
    }

    /// For people: what could have stood there.
    fn in_words(&self) -> String {
        let letters = self.letters.chars().map(|letter| format!("{letter} with a number"));
        let words = self.words.iter().map(|word| (*word).to_owned());
        let all: Vec<String> = letters.chain(words).collect();
        match (all.is_empty(), self.placed) {
            (true, 0) => "nothing follows it".to_owned(),
            (true, _) => "nothing more follows it".to_owned(),
            _ => format!("it takes {}", all.join(", ")),
        }
    }
}

/// Refuses words that the operation would not read. Operations that are not known pass: the caller that looks
/// them up refuses them.
pub(super) fn check(call: &Call<'_>) -> Result<(), TextError> {
    let name = call.operation.strip_suffix('!').unwrap_or(&call.operation);
    let Some(taken) = Taken::by(name) else { return Ok(()) };
    if name != call.operation && !taken.in_place {
        return Err(call.error(0, format!("{name} has no form in place; leave out the !")));
    }
    let inputs_fit = match taken.inputs {
        Inputs::One => call.inputs.len() == 1,
        Inputs::Two => call.inputs.len() == 2,
        Inputs::OneOrThree => matches!(call.inputs.len(), 1 | 3),
        Inputs::Any => true,
    };
    if !inputs_fit {
        let wanted = match taken.inputs {
            Inputs::Two => "two inputs are needed: add < a b",
            Inputs::OneOrThree => "attention reads one result, or query, key and value: < q k v",
            _ => "this reads one result; name one label after <",
        };
        return Err(call.error(0, wanted));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, word) in call.arguments.iter().enumerate().skip(taken.placed) {
        let wrong = |problem: String| Err(call.error(1 + index, problem));
        let letter = word.get(..1).filter(|letter| taken.letters.contains(*letter));
        let key = match letter {
            _ if taken.words.contains(&word.as_str()) => word.as_str(),
            Some(letter) if is_number(&word[1..]) => letter,
            _ => return wrong(format!("{word:?} means nothing to {name}; {}", taken.in_words())),
        };
        if seen.contains(&key) {
            return wrong(format!("{key} is given twice"));
        }
        seen.push(key);
    }
    Ok(())
}

/// `3` or `1x7`.
fn is_number(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('x') {
        Some((first, second)) => digits(first) && digits(second),
        None => digits(text),
    }
}

impl Call<'_> {
    /// A number that is the same for rows and columns.
    pub(super) fn option(&self, letter: char) -> Result<Option<u32>, TextError> {
        match self.pair(letter)? {
            Some((first, second)) if first != second => {
                let problem = format!("{letter} takes one number here, for rows and columns");
                Err(self.error(self.place_of(letter), problem))
            }
            pair => Ok(pair.map(|(first, _)| first)),
        }
    }

    /// `k3` or `k1x7`.
    pub(super) fn pair(&self, letter: char) -> Result<Option<(u32, u32)>, TextError> {
        let place = self.place_of(letter);
        let Some(word) = place.checked_sub(1).and_then(|index| self.arguments.get(index)) else {
            return Ok(None);
        };
        let rest = &word[1..];
        let (first, second) = rest.split_once('x').unwrap_or((rest, rest));
        let least = u32::from(letter != 'p');
        let number = |text: &str| {
            text.parse().ok().filter(|number| (least..=LARGEST_OPTION).contains(number))
        };
        match (number(first), number(second)) {
            (Some(first), Some(second)) => Ok(Some((first, second))),
            _ => {
                let problem =
                    format!("{word:?}: {letter} takes a number from {least} to {LARGEST_OPTION}");
                Err(self.error(place, problem))
            }
        }
    }

    /// The place behind the operation of the word with this letter; that of the operation if there is none.
    fn place_of(&self, letter: char) -> usize {
        let found =
            self.arguments.iter().position(|word| word.strip_prefix(letter).is_some_and(is_number));
        found.map_or(0, |index| index + 1)
    }
}
