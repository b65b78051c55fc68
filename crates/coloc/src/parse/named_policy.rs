//! Policies by name, for verbs that compare several.

use crate::args::policy::{EstimatorFlag, PolicyArgs, PresetFlag};
use crate::error::{CliError, UsageError};
use clap::ValueEnum;

/// A policy with the name that people see.
#[derive(Clone, Debug)]
pub(crate) struct NamedPolicy {
    pub(crate) name: String,
    pub(crate) args: PolicyArgs,
}

/// Reads `NAME[:ESTIMATOR]`, where `NAME` is `exclusive`, a preset, or `QUEUE/PLACE/SHARE`.
pub(crate) fn parse(text: &str) -> Result<NamedPolicy, CliError> {
    let (policy, estimator) = match text.split_once(':') {
        Some((policy, estimator)) => (policy, Some(value::<EstimatorFlag>(text, estimator)?)),
        None => (text, None),
    };
    let mut args = PolicyArgs { estimator, ..PolicyArgs::default() };
    let parts: Vec<&str> = policy.split('/').collect();
    match parts[..] {
        ["exclusive"] => {}
        [preset] => args.preset = Some(value::<PresetFlag>(text, preset)?),
        [queue, place, share] => {
            args.queue = Some(value(text, queue)?);
            args.place = Some(value(text, place)?);
            args.share = Some(value(text, share)?);
        }
        _ => return Err(unknown(text, policy, "")),
    }
    Ok(NamedPolicy { name: text.to_owned(), args })
}

fn value<T: ValueEnum>(whole: &str, part: &str) -> Result<T, CliError> {
    T::from_str(part, false).map_err(|_| {
        let names: Vec<String> = T::value_variants()
            .iter()
            .filter_map(|variant| Some(variant.to_possible_value()?.get_name().to_owned()))
            .collect();
        unknown(whole, part, &format!("; expected one of {}", names.join(", ")))
    })
}

fn unknown(whole: &str, part: &str, hint: &str) -> CliError {
    let why = format!(
        "cannot read {part:?} in {whole:?}{hint}\n\
         a policy is exclusive, a preset, or QUEUE/PLACE/SHARE, each with :ESTIMATOR if you like, \
         such as carma-v2:gpumemnet or best-effort/magm/mps:oracle"
    );
    UsageError::flag("--policies", why).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_core::policy::{Place, Queue};
    use coloc_model::Share;
    use coloc_sim::Estimator;

    #[test]
    fn names_spell_out_policies() {
        let named = parse("best-effort/magm/mps:none").expect("a valid name");
        let policy = named.args.policy();
        assert_eq!((policy.queue, policy.place), (Queue::BestEffort, Place::Magm));
        assert_eq!((policy.share, named.args.estimator()), (Share::Mps, Estimator::None));
        assert_eq!(parse("carma-v2").expect("a preset").args.estimator(), Estimator::GpuMemNet);
        assert!(parse("exclusive").expect("exclusive").args.policy().needs_idle());
    }

    #[test]
    fn nonsense_is_refused_with_the_choices() {
        for text in ["", "carma", "fifo/magm", "fifo/magm/mps/x", "coloc:guess", "a/b/c", ":oracle"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
        let message = parse("fifo/nowhere/mps").expect_err("no such place").to_string();
        assert!(message.contains("least-interference"), "{message}");
    }
}
