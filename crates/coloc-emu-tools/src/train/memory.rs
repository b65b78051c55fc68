//! Memory in phases: loading, context, weights, first iterations, plateau, evaluations, and what comes late.

use super::failure::{self, Failure};
use super::work::Work;
use coloc_emu::Place;
use coloc_emu::client::Client;
use coloc_model::{Bytes, Millis};
use coloc_physics::{Growth, MemoryCurve};

/// A caching allocator asks the driver for pieces of this size at most.
const PIECE: Bytes = Bytes::from_mib(512);

/// What the trainer holds and when it takes more.
pub(super) struct Memory<'a> {
    places: &'a [Place],
    memory_curve: MemoryCurve,
    late: Option<(f64, Bytes)>,
    seconds: f64,
    time_scale: f64,
    started_ns: u64,
    /// Of the task's own time, what it left out because the fleet's clock stood still.
    skipped: Millis,
    /// On each device, context included.
    held: Bytes,
}

/// Where a run is in its course.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Stage {
    since_launch: Millis,
    /// Its SMs are at work.
    pub(super) trains: bool,
    /// Seconds of loading that are behind it.
    pub(super) loaded_s: f64,
    /// Fleet seconds until it holds something else or begins to train, if that is known.
    pub(super) next_in: Option<f64>,
}

impl<'a> Memory<'a> {
    /// Opens a context on every device.
    pub(super) fn open(
        client: &Client,
        places: &'a [Place],
        work: &Work,
        time_scale: f64,
    ) -> Result<Self, Failure> {
        for &place in places {
            client.open_context(place).map_err(failure::context)?;
        }
        let started_ns = client.lock()?.0.now_ns();
        Ok(Self::at_launch(places, work, time_scale, started_ns))
    }

    fn at_launch(places: &'a [Place], work: &Work, time_scale: f64, started_ns: u64) -> Self {
        Memory {
            places,
            memory_curve: MemoryCurve { plateau: work.profile.memory, phases: work.phases },
            late: work.late_growth,
            seconds: work.seconds,
            time_scale,
            started_ns,
            skipped: Millis::ZERO,
            held: Growth::CONTEXT,
        }
    }

    /// Where the run is at this time of the fleet.
    pub(super) fn stage(&mut self, now_ns: u64, frozen: bool) -> Stage {
        let passed_s = now_ns.saturating_sub(self.started_ns) as f64 / 1e9 * self.time_scale;
        let passed = Millis((passed_s * 1000.0) as u64);
        let load = self.memory_curve.phases.load.map_or(Millis::ZERO, |load| load.span);
        if frozen {
            // On a stopped clock a task would never settle: it goes to its plateau at once.
            let warm = load + Growth::warm_up();
            self.skipped = self.skipped.max(Millis(warm.0.saturating_sub(passed.0)));
        }
        let since_launch = passed + self.skipped;
        let loads = Millis(load.0.saturating_sub(self.skipped.0));
        let until = |next: Millis| {
            let left_s = next.0.saturating_sub(self.skipped.0) as f64 / 1000.0 - passed_s;
            left_s.max(0.0) / self.time_scale
        };
        Stage {
            since_launch,
            trains: self.memory_curve.trains(since_launch),
            loaded_s: loads.secs().min(passed_s),
            next_in: self.memory_curve.next(since_launch).map(until),
        }
    }

    /// Takes or gives back what is due.
    pub(super) fn follow(
        &mut self,
        client: &Client,
        stage: &Stage,
        work_s: f64,
    ) -> Result<(), Failure> {
        let mut target = self.memory_curve.held(stage.since_launch);
        if let Some((at, more)) = self.late
            && work_s >= at * self.seconds
        {
            target += more;
        }
        // The context stays, however little the task needs.
        self.reach(client, target.max(Growth::CONTEXT))
    }

    fn reach(&mut self, client: &Client, target: Bytes) -> Result<(), Failure> {
        while self.held < target {
            let piece = target.saturating_sub(self.held).min(PIECE);
            for &place in self.places {
                client.allocate(place, piece).map_err(|error| {
                    let ours = self.held.saturating_sub(Growth::CONTEXT);
                    failure::allocation(client, self.places, place, piece, ours, error)
                })?;
            }
            self.held += piece;
        }
        if self.held > target {
            for &place in self.places {
                client.release(place, self.held.saturating_sub(target))?;
            }
            self.held = target;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_physics::{Load, Phases};

    const SECOND_NS: u64 = 1_000_000_000;

    /// Loads for 300 s, in a fleet in which ten of its seconds pass in one.
    fn loading() -> Memory<'static> {
        let mut work = Work::catalogued("resnet").expect("catalogued");
        let load = Load { span: Millis::from_secs(300), held: Bytes::from_mib(500) };
        work.phases = Phases { load: Some(load), ..Phases::NONE };
        Memory::at_launch(&[], &work, 10.0, 5 * SECOND_NS)
    }

    #[test]
    fn loading_is_part_of_the_run_and_trains_nothing() {
        let mut memory = loading();
        let stage = memory.stage(15 * SECOND_NS, false);
        assert_eq!((stage.trains, stage.loaded_s, stage.next_in), (false, 100.0, Some(20.0)));
        let stage = memory.stage(35 * SECOND_NS, false);
        assert_eq!((stage.trains, stage.loaded_s, stage.next_in), (true, 300.0, Some(0.8)));
        let stage = memory.stage(1000 * SECOND_NS, false);
        assert_eq!((stage.trains, stage.loaded_s, stage.next_in), (true, 300.0, None));
    }

    #[test]
    fn a_stopped_clock_shows_the_plateau_and_what_it_skipped_stays_skipped() {
        let mut memory = loading();
        for (now_s, frozen) in [(15, true), (15, false), (16, false)] {
            let stage = memory.stage(now_s * SECOND_NS, frozen);
            assert!(stage.trains, "{now_s}");
            assert_eq!(memory.memory_curve.held(stage.since_launch), memory.memory_curve.plateau);
            assert_eq!(stage.loaded_s, 80.0, "the time that passed before, less the warm-up");
        }
    }
}
