//! How a task's memory grows after launch: context first, then weights and the first iterations, then
//! a plateau. An estimate that is too low is found out here, not at launch.

use coloc_model::{Bytes, Millis};

/// When the next step comes, and how much of the plateau the task holds from then on.
const STEPS: [(Millis, f64); 3] =
    [(Millis::ZERO, 0.0), (Millis::from_secs(8), 0.6), (Millis::from_secs(20), 1.0)];

/// Where a task is on its way to the plateau.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    step: usize,
}

impl Growth {
    /// A task that was just launched.
    pub const LAUNCH: Growth = Growth { step: 0 };

    /// A task that was launched this long ago.
    pub fn at(since_launch: Millis) -> Growth {
        let begun = STEPS.iter().filter(|&&(after, _)| after <= since_launch).count();
        Growth { step: begun.max(1) - 1 }
    }

    /// How long after launch the steps come.
    pub fn times() -> impl Iterator<Item = Millis> {
        STEPS.iter().map(|&(after, _)| after)
    }

    /// What a CUDA context takes with the libraries of a training framework loaded.
    pub const CONTEXT: Bytes = Bytes::from_mib(450);

    /// Memory held at this step by a task that settles at `plateau`.
    pub fn held(self, plateau: Bytes) -> Bytes {
        if self.step + 1 == STEPS.len() {
            return plateau;
        }
        plateau.scale(STEPS[self.step].1).max(Self::CONTEXT.min(plateau))
    }

    /// The step after this one, and how long after launch it comes.
    pub fn next(self) -> Option<(Millis, Growth)> {
        let step = self.step + 1;
        STEPS.get(step).map(|&(after, _)| (after, Growth { step }))
    }

    /// What a task that settles at `plateau` and ran for this long held less than that: bytes times
    /// milliseconds.
    pub fn shortfall(plateau: Bytes, ran: Millis) -> u128 {
        let mut growth = Growth::LAUNCH;
        let (mut since, mut sum) = (Millis::ZERO, 0);
        while let Some((after, next)) = growth.next() {
            let span = u128::from(after.min(ran).0 - since.min(ran).0);
            sum += u128::from((plateau - growth.held(plateau)).0) * span;
            (since, growth) = (after, next);
        }
        sum
    }

    /// How long after launch the plateau is reached.
    pub const fn warm_up() -> Millis {
        STEPS[STEPS.len() - 1].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_rises_from_the_context_to_the_plateau() {
        let plateau = Bytes::from_mib(10_000);
        let mut growth = Growth::LAUNCH;
        let mut held = vec![growth.held(plateau)];
        while let Some((_, next)) = growth.next() {
            growth = next;
            held.push(growth.held(plateau));
        }
        assert_eq!(held, [450, 6000, 10_000].map(Bytes::from_mib));
    }

    #[test]
    fn the_shortfall_is_what_the_steps_leave_out() {
        let plateau = Bytes::from_mib(10_000);
        let mib = u128::from(Bytes::from_mib(1).0);
        let cases = [(0, 0), (5, 5 * 9550), (8, 8 * 9550), (10, 8 * 9550 + 2 * 4000)];
        let all = 8 * 9550 + 12 * 4000;
        for (secs, expected) in cases.into_iter().chain([(20, all), (3600, all)]) {
            let found = Growth::shortfall(plateau, Millis::from_secs(secs));
            assert_eq!(found, expected * 1000 * mib, "{secs} s");
        }
    }

    #[test]
    fn a_tiny_task_never_holds_more_than_its_plateau() {
        let plateau = Bytes::from_mib(300);
        assert_eq!(Growth::LAUNCH.held(plateau), plateau);
    }
}
