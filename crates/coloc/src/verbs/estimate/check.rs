//! Options that would change nothing are refused: a user who gives one expects something of it.

use super::{EstimateArgs, EstimateError, Who};
use crate::estimating::LayersError;

/// Refuses what the estimator that is asked does not look at.
pub(super) fn options(args: &EstimateArgs) -> Result<(), EstimateError> {
    let Some((options, instead)) = useless(args) else { return Ok(()) };
    Err(EstimateError::from(LayersError::Unused(format!(
        "{options} changes nothing here: {instead}"
    ))))
}

/// The first option that changes nothing, and why.
fn useless(args: &EstimateArgs) -> Option<(&'static str, &'static str)> {
    let who = args.estimator;
    let layers = args.layers.source().is_some();
    let replays = matches!(who, Who::Replay | Who::Ladder);
    let remembers = matches!(who, Who::History | Who::Ladder);
    let training = args.layers.training.given().next();
    let training = training.or(args.layers.gpus.map(|_| "--gpus"));
    let compared = ["--optimizer", "--precision", "--zero", "--samples", "--summary-pass"];
    let ignored = args.layers.training.given().find(|flag| compared.contains(flag));
    let given = [
        (
            args.horus_quirks && (who != Who::Horus || args.layers.summary.is_none()),
            ("--horus-quirks", "it works with --estimator horus --summary"),
        ),
        (args.dry_run && !replays, ("--dry-run", "it works with --estimator replay and ladder")),
        (
            args.dry_run && who == Who::Replay && layers,
            ("--dry-run", "the layers are given; --estimator ladder asks for both"),
        ),
        (args.steps.is_some() && !args.dry_run, ("--steps", "it belongs to --dry-run")),
        (
            args.state.is_some() && !remembers,
            ("--state", "it belongs to --estimator history and ladder"),
        ),
        (
            !args.script.is_empty() && !remembers && !args.dry_run,
            (
                "the command after --",
                "it is asked for with --dry-run, --estimator history or ladder",
            ),
        ),
        (args.env.is_some() && !replays, ("--env", "this estimator knows no environments")),
        (layers && who == Who::History, ("a model", "the history knows commands")),
    ];
    let of_training = match (layers, who) {
        (false, _) if args.dry_run || remembers => {
            training.map(|flag| (flag, "the command says itself how it is trained"))
        }
        (_, Who::Horus | Who::Gpumemnet) => {
            let ignored = ignored.or(args.layers.gpus.map(|_| "--gpus"));
            ignored.map(|flag| (flag, "this estimator does not look at it"))
        }
        _ => None,
    };
    let undivided = args.layers.gpus.is_some_and(|gpus| gpus > 1)
        && args.layers.training.zero.unwrap_or(0) == 0;
    let first = given.into_iter().find(|(useless, _)| *useless).map(|(_, option)| option);
    first.or(of_training).or(undivided.then_some(("--gpus", "it divides nothing without --zero")))
}
