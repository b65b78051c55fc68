//! The default estimator: plays a task's training against PyTorch's caching allocator.

pub mod allocator;
mod backward;
mod direct;
mod forward;
mod memory;
mod performance;
mod player;
mod pools;
mod repeats;
mod reuse;
mod script;
mod tape;
mod trainer;
mod workspace;

pub use memory::Usage;
pub use workspace::{ConvCall, CopyRule, NoWorkspace, Pass, WorkspaceProvider};

use crate::graph::Graph;
use crate::run::RunConfig;
use coloc_model::Bytes;

/// What a replay saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// The most memory that the allocator asked of the device.
    pub reserved: Bytes,
    /// The most memory that was in use at once.
    pub allocated: Bytes,
    /// Where it went at the moment of the second.
    pub usage: Usage,
    /// The device's limit was passed; the figures are what it would have needed.
    pub ran_out: bool,
}

/// A task's training, ready to be played under one rule of workspaces after another.
pub struct Recording(Kind);

enum Kind {
    /// Without convolutions every rule gives the same.
    Same(Replayed),
    Tape {
        tape: tape::Tape,
        pools: pools::Pools,
        limit: Option<u64>,
    },
}

impl Recording {
    /// Records the training of `graph`: parameters, rehearsal, iterations, optimizer steps.
    pub fn new(graph: &Graph, run: &RunConfig) -> Self {
        let limit = run.limit.map(|limit| limit.0);
        if !graph.has_convolutions() {
            let script = trainer::Trainer::new(graph, run).script();
            let mut memory = direct::Direct::new(limit, &NoWorkspace, script.steps.len());
            performance::perform(&script, run, &mut memory);
            return Recording(Kind::Same(memory.replayed()));
        }
        let tape = record(graph, run);
        let pools = pools::Pools::of(&tape);
        Recording(Kind::Tape { tape, pools, limit })
    }

    /// Plays it.
    pub fn replay(&self, workspaces: &dyn WorkspaceProvider) -> Replayed {
        let (tape, pools, limit) = match &self.0 {
            Kind::Same(replayed) => return *replayed,
            Kind::Tape { tape, pools, limit } => (tape, pools, *limit),
        };
        let played = pools
            .play(tape, limit, workspaces)
            .unwrap_or_else(|| player::play(tape, limit, workspaces));
        Replayed {
            reserved: Bytes(played.reserved),
            allocated: Bytes(played.peak.bytes),
            usage: tape.usage(played.peak, played.reserved),
            ran_out: played.ran_out,
        }
    }
}

fn record(graph: &Graph, run: &RunConfig) -> tape::Tape {
    let script = trainer::Trainer::new(graph, run).script();
    let mut tape = tape::Tape::with_capacity(script.tensors * (1 + run.batches().count()));
    performance::perform(&script, run, &mut tape);
    tape
}

/// Plays the training of `graph` once.
pub fn replay(graph: &Graph, run: &RunConfig, workspaces: &dyn WorkspaceProvider) -> Replayed {
    Recording::new(graph, run).replay(workspaces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::graph::text;
    use crate::run::{Optimizer, Precision, Rehearsal};
    use proptest::prelude::*;

    /// Where the pools can be played apart, the device's memory is the same as when they are not.
    #[test]
    fn pools_played_apart_agree_with_one_allocator() {
        let rules: [&dyn WorkspaceProvider; 3] =
            [&CopyRule::default(), &CopyRule { eager_output: true }, &NoWorkspace];
        let mut apart = 0;
        for name in catalogue::task_names() {
            let Some(mut task) = catalogue::task(name) else { continue };
            for limit in [None, Some(Bytes::from_mib(12_000)), Some(Bytes::from_mib(900))] {
                task.run.limit = limit;
                let tape = record(&task.graph, &task.run);
                let limit = limit.map(|limit| limit.0);
                let pools = pools::Pools::of(&tape);
                for rule in rules {
                    let Some(played) = pools.play(&tape, limit, rule) else { continue };
                    let whole = player::play(&tape, limit, rule);
                    assert_eq!(played.reserved, whole.reserved, "{name}");
                    assert_eq!(played.peak, whole.peak, "{name}");
                    assert!(!whole.ran_out, "{name}");
                    apart += 1;
                }
            }
        }
        assert!(apart > 100, "only {apart} were played apart");
    }

    fn optimizer() -> impl Strategy<Value = Optimizer> {
        prop::sample::select(vec![Optimizer::Sgd, Optimizer::SgdMomentumDecay, Optimizer::Adam])
    }

    proptest! {
        /// Performed at once, a training needs what it needs when each block of its tape is taken and
        /// freed by itself.
        #[test]
        fn performing_agrees_with_playing_the_tape(
            (layers, heads, width) in (1usize..5, 1u32..5, 1u32..200),
            (tokens, hidden, classes) in (1u32..300, 1u32..900, 1u32..2000),
            (batch, last_batch, rehearsed) in (1u32..70, 0u32..70, prop::option::of(1u32..70)),
            optimizer in optimizer(),
            precision in prop::sample::select(vec![Precision::Fp32, Precision::Half, Precision::Mixed]),
            room in prop::option::of(1u64..8),
        ) {
            let width = width * heads;
            let source = format!(
                "tokens {tokens}\nembedding 5000 {width}\nposition\ndef layer\nlinear {}\n\
                attention {heads}\nlinear {width}\nx = dropout\nadd < in x\ny = ln\nlinear {hidden}\n\
                relu\ndropout\nlinear {width}\nz = dropout\nadd < y z\nln\nend\nrepeat {layers}\n\
                layer\nend\ngap\nlinear {classes}\n",
                3 * width,
            );
            let graph = text::parse(&source).unwrap();
            let rehearsal = rehearsed.map(|batch| Rehearsal { batch, passes: 2 });
            let mut run =
                RunConfig { last_batch, optimizer, precision, rehearsal, ..RunConfig::new(batch) };
            if let Some(eighths) = room {
                let all = replay(&graph, &run, &NoWorkspace).reserved.0;
                run.limit = Some(Bytes(all / 8 * eighths));
            }
            let performed = replay(&graph, &run, &NoWorkspace);
            let tape = record(&graph, &run);
            let played = player::play(&tape, run.limit.map(|limit| limit.0), &NoWorkspace);
            prop_assert_eq!(performed.reserved.0, played.reserved);
            prop_assert_eq!(performed.allocated.0, played.peak.bytes);
            prop_assert_eq!(performed.usage, tape.usage(played.peak, played.reserved));
            prop_assert_eq!(performed.ran_out, played.ran_out);
        }
    }
}
