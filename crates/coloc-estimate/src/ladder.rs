//! The order in which estimators are asked: the first that answers is believed.

use crate::estimate::{Estimate, Estimator};
use crate::faketensor;
use crate::graph::Graph;
use crate::history::History;
use crate::replay_estimator::ReplayEstimator;
use crate::run::RunConfig;
use serde::Serialize;

/// What is known of a task before it runs.
#[derive(Clone, Copy, Default)]
pub struct Known<'a> {
    /// Its command, if running it with fake tensors is allowed, and for how many steps.
    pub dry_run: Option<(&'a [String], u32)>,
    /// Its graph and how it is trained.
    pub graph: Option<(&'a Graph, &'a RunConfig)>,
    /// What ran before, and what tasks like this one are called there.
    pub history: Option<(&'a History, &'a str)>,
}

/// One rung and what it said.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// Which estimator.
    pub estimator: &'static str,
    /// Why it did not answer; `None` for the one that did.
    pub declined: Option<String>,
}

/// The answer and the way to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The estimate, if any rung had one.
    pub estimate: Option<Estimate>,
    /// The estimators that were asked, in order.
    pub steps: Vec<Step>,
}

/// Asks history, then the replay, then a dry run.
pub fn ask(known: Known<'_>, replay: &ReplayEstimator<'_>) -> Answer {
    type Rung<'r> = (&'static str, Box<dyn Fn() -> Result<Estimate, String> + 'r>);
    let rungs: [Rung<'_>; 3] = [
        ("history", Box::new(|| from_history(known))),
        (
            "replay",
            Box::new(|| {
                let (graph, run) = known.graph.ok_or("the task's layers are not known")?;
                Ok(replay.estimate(graph, run))
            }),
        ),
        ("faketensor", Box::new(|| dry_run(known, replay))),
    ];
    let mut steps = Vec::new();
    for (estimator, rung) in rungs {
        match rung() {
            Ok(estimate) => {
                steps.push(Step { estimator, declined: None });
                return Answer { estimate: Some(estimate), steps };
            }
            Err(reason) => steps.push(Step { estimator, declined: Some(reason) }),
        }
    }
    Answer { estimate: None, steps }
}

fn from_history(known: Known<'_>) -> Result<Estimate, String> {
    let (history, signature) = known.history.ok_or("no history of a command was named")?;
    history.estimate(signature).ok_or_else(|| "this command never ran to its end before".to_owned())
}

fn dry_run(known: Known<'_>, replay: &ReplayEstimator<'_>) -> Result<Estimate, String> {
    let (command, steps) = known.dry_run.ok_or("a dry run was not asked for")?;
    faketensor::dry_run(command, steps, &replay.environment()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{GraphBuilder, Loss, Shape};
    use crate::learned::DEFAULT_ENVIRONMENT;
    use coloc_model::Bytes;

    #[test]
    fn the_first_that_knows_answers() {
        let replay = ReplayEstimator::shipped(DEFAULT_ENVIRONMENT).unwrap();
        let mut builder = GraphBuilder::new(Shape::features(16));
        builder.linear(builder.input(), 4, true);
        let graph = builder.finish(Loss::CrossEntropy);
        let run = RunConfig::new(8);
        let mut history = History::default();
        let known = Known { graph: Some((&graph, &run)), ..Known::default() };
        let signature = "python train.py";

        let answer = ask(Known { history: Some((&history, signature)), ..known }, &replay);
        assert_eq!(answer.estimate.unwrap().estimator, "replay");
        assert!(answer.steps[0].declined.as_deref().unwrap().contains("never ran"));

        history.remember(signature, Bytes::from_mib(3000));
        let answer = ask(Known { history: Some((&history, signature)), ..known }, &replay);
        assert_eq!(answer.estimate.unwrap().estimator, "history");

        let answer = ask(Known::default(), &replay);
        assert_eq!(answer.estimate, None);
        assert_eq!(answer.steps.len(), 3);
    }
}
