//! What a task's memory does over a run: it may load data first, warms up to a plateau, and may hold more while it
//! evaluates or from some moment on. Times are counted from launch, or from the end of the warm-up.

use crate::Growth;
use coloc_model::{Bytes, Millis};

/// A task that loads before it trains: its SMs are idle meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// How long.
    pub span: Millis,
    /// What it holds on each GPU.
    pub held: Bytes,
}

/// A task that evaluates now and then, and gives back what it held for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evaluate {
    /// From the beginning of one to that of the next; training comes first.
    pub every: Millis,
    /// How long each takes.
    pub span: Millis,
    /// What it holds then on each GPU.
    pub held: Bytes,
}

/// A task that holds more from some moment on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LateGrowth {
    /// After this long at its plateau.
    pub after: Millis,
    /// What it holds from then on, on each GPU.
    pub held: Bytes,
}

/// What a task does beside warming up and training.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Phases {
    /// Before it trains.
    pub load: Option<Load>,
    /// While it trains.
    pub evaluate: Option<Evaluate>,
    /// Later on.
    pub late: Option<LateGrowth>,
}

impl Phases {
    /// Nothing: it warms up and trains.
    pub const NONE: Phases = Phases { load: None, evaluate: None, late: None };
}

/// The course of a run whose plateau is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryCurve {
    /// What it holds once it is warm.
    pub plateau: Bytes,
    /// What else it does.
    pub phases: Phases,
}

impl MemoryCurve {
    /// The most that it ever holds on one GPU, if it runs long enough.
    pub fn peak(&self) -> Bytes {
        let Phases { load, evaluate, late } = self.phases;
        let held = load.map(|l| l.held).into_iter().chain(evaluate.map(|e| e.held));
        held.chain(late.map(|l| l.held)).fold(self.plateau, Bytes::max)
    }

    /// What it holds on each GPU, so long after its launch.
    pub fn held(&self, since_launch: Millis) -> Bytes {
        let Phases { load, evaluate, late } = self.phases;
        let loaded = load.map_or(Bytes::ZERO, |load| load.held);
        let begins = self.begins();
        if since_launch < begins {
            return loaded.max(Growth::CONTEXT.min(self.plateau));
        }
        let warming = minus(since_launch, begins);
        let growth = Growth::at(warming).held(self.plateau).max(loaded);
        let Some(warm) = warming.0.checked_sub(Growth::warm_up().0).map(Millis) else {
            return growth;
        };
        let late = late.filter(|late| warm >= late.after).map(|late| late.held);
        let evaluates = |e: &Evaluate| warm >= e.every && Millis(warm.0 % e.every.0) < e.span;
        let evaluation = evaluate.filter(evaluates).map(|evaluate| evaluate.held);
        late.into_iter().chain(evaluation).fold(growth, Bytes::max)
    }

    /// Its SMs are at work, so long after its launch.
    pub fn trains(&self, since_launch: Millis) -> bool {
        since_launch >= self.begins()
    }

    /// When it next holds something else or begins to train, after a time since its launch.
    pub fn next(&self, since_launch: Millis) -> Option<Millis> {
        let begins = self.begins();
        let warm = begins + Growth::warm_up();
        let Phases { evaluate, late, .. } = self.phases;
        let steps = Growth::times().map(|after| begins + after);
        let late = late.map(|late| warm + late.after);
        let evaluation = evaluate.into_iter().flat_map(|Evaluate { every, span, .. }| {
            let passed = minus(since_launch, warm).0 / every.0;
            let turns = [passed.max(1), passed + 1];
            turns.into_iter().flat_map(move |turn| {
                let start = warm + Millis(turn * every.0);
                [start, start + span]
            })
        });
        let changes = steps.chain(late).chain(evaluation);
        changes.filter(|&at| at > since_launch).min()
    }

    fn begins(&self) -> Millis {
        self.phases.load.map_or(Millis::ZERO, |load| load.span)
    }
}

fn minus(span: Millis, other: Millis) -> Millis {
    Millis(span.0.saturating_sub(other.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Millis {
        Millis::from_secs(secs)
    }

    fn steps(memory_curve: &MemoryCurve, until: u64) -> Vec<(u64, f64)> {
        let mut at = Millis::ZERO;
        let mut steps = vec![(0, memory_curve.held(at).mib())];
        while let Some(next) = memory_curve.next(at).filter(|&next| next <= secs(until)) {
            at = next;
            steps.push((at.0 / 1000, memory_curve.held(at).mib()));
        }
        steps
    }

    #[test]
    fn without_phases_it_is_the_usual_ramp() {
        let memory_curve = MemoryCurve { plateau: Bytes::from_mib(10_000), phases: Phases::NONE };
        assert_eq!(steps(&memory_curve, 10_000), [(0, 450.0), (8, 6000.0), (20, 10_000.0)]);
        assert!(memory_curve.trains(Millis::ZERO));
    }

    #[test]
    fn loading_comes_first_and_trains_nothing() {
        let load = Load { span: secs(300), held: Bytes::from_mib(500) };
        let phases = Phases { load: Some(load), ..Phases::NONE };
        let memory_curve = MemoryCurve { plateau: Bytes::from_mib(10_000), phases };
        let expected = [(0, 500.0), (300, 500.0), (308, 6000.0), (320, 10_000.0)];
        assert_eq!(steps(&memory_curve, 10_000), expected);
        assert!(!memory_curve.trains(secs(299)) && memory_curve.trains(secs(300)));
    }

    #[test]
    fn evaluations_come_and_go_and_late_growth_stays() {
        let phases = Phases {
            load: None,
            evaluate: Some(Evaluate {
                every: secs(100),
                span: secs(10),
                held: Bytes::from_mib(3000),
            }),
            late: Some(LateGrowth { after: secs(150), held: Bytes::from_mib(4000) }),
        };
        let memory_curve = MemoryCurve { plateau: Bytes::from_mib(2000), phases };
        let expected = [
            (0, 450.0),
            (8, 1200.0),
            (20, 2000.0),
            (120, 3000.0),
            (130, 2000.0),
            (170, 4000.0),
            (220, 4000.0),
            (230, 4000.0),
        ];
        assert_eq!(steps(&memory_curve, 300), expected);
        assert_eq!(memory_curve.peak(), Bytes::from_mib(4000));
    }
}
