//! What happens in the world: processes end, the monitor looks.

use super::{Ending, Owner};
use crate::cgroup::HostMemory;
use crate::hardware::Sighting;
use crate::launch::last_words_of;
use crate::outcome::{Verdict, judge};
use crate::record::{Exit, Phase};
use crate::spec::OnOom;
use coloc_core::{Effect, Event};
use coloc_model::mig::Layout;
use coloc_model::{Bytes, Outcome, TaskId, Time};

/// A log's end is long enough to hold a framework's last words.
const LAST_WORDS: u64 = 64 << 10;
/// Asked for on top of what was seen when a task did not say what it wanted.
const UNSAID: f64 = 1.2;

/// What is known of a task that died for want of host memory.
fn out_of_host_memory(told: Option<HostMemory>) -> String {
    match told {
        Some(HostMemory { kills: 1.., limit: Some(limit), .. }) => {
            format!("ran out of host memory: the kernel killed it at its limit of {limit}")
        }
        Some(HostMemory { kills: 1.., .. }) => {
            "ran out of host memory: the kernel killed it".to_owned()
        }
        Some(_) => "ran out of host memory".to_owned(),
        None => "ran out of host memory, or was killed by somebody".to_owned(),
    }
}

impl Owner {
    /// The shim of an attempt is gone: how did the task end?
    pub(super) fn shim_gone(
        &mut self,
        now: Time,
        task: TaskId,
        attempt: u32,
        wishes: &mut Vec<Effect>,
    ) {
        let Some(live) = self.tasks.get(&task) else { return };
        // Another attempt is a matter of its own.
        if live.record.attempt != attempt || !live.record.phase.is_on_gpus() {
            return;
        }
        self.roots_changed = true;
        self.seen_at.remove(&task);
        // After the shim, whatever it left behind.
        self.launcher.end_group(&live.record);
        let holds = self.launcher.true_holds(&live.record);
        let (verdict, exit) = self.verdict(task);
        let verdict = self.for_its_memory(task, verdict);
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.exit = exit;
        live.record.holds = holds;
        let preempted = live.record.phase == Phase::Preempting;
        match (live.ending, preempted) {
            // It was to go, and it has gone.
            (Some(_), _) => self.scheduler.note(now, Event::Stopped(task), wishes),
            (None, true) if verdict != Some(Verdict::Completed) => {
                live.record.phase = Phase::Pending;
                live.record.placement = None;
                self.changed(task, Some("is off its GPUs".to_owned()));
            }
            (None, _) => self.ended(now, task, verdict, wishes),
        }
    }

    /// How the last attempt of a task ended; no verdict if nobody wrote it down.
    fn verdict(&self, task: TaskId) -> (Option<Verdict>, Option<Exit>) {
        let Some(live) = self.tasks.get(&task) else { return (None, None) };
        let run = self.launcher.run_dir(&live.record);
        let Ok(Some(ended)) = run.ended() else { return (None, None) };
        let log = last_words_of(&run, &live.record, &live.spec);
        let words = crate::run::tail(&log, live.record.owner, LAST_WORDS).unwrap_or_default();
        (Some(judge(&ended, &words)), Some(ended.exit))
    }

    fn ended(
        &mut self,
        now: Time,
        task: TaskId,
        verdict: Option<Verdict>,
        wishes: &mut Vec<Effect>,
    ) {
        let outcome = match verdict {
            Some(Verdict::Completed) => Outcome::Completed,
            Some(Verdict::GpuOutOfMemory { asked, held, evidence }) => {
                self.ran_out_of_memory(task, asked, held, &evidence)
            }
            // A signal or an error of any kind may be what a lost GPU looks like from inside.
            Some(Verdict::Failed | Verdict::MpsTrouble(_) | Verdict::HostOutOfMemory(None))
                if self.lost_its_gpu(now, task, wishes) =>
            {
                Outcome::Failed
            }
            Some(Verdict::MpsTrouble(why)) if self.lost_its_mps(task, Some(&why)) => {
                Outcome::Failed
            }
            Some(Verdict::Failed | Verdict::HostOutOfMemory(None))
                if self.lost_its_mps(task, None) =>
            {
                Outcome::Failed
            }
            other => self.failed(task, other),
        };
        self.scheduler.note(now, Event::Ended { task, outcome }, wishes);
        // Whoever waits for another try is in the scheduler's hands again.
        if let Some(live) = self.tasks.get_mut(&task)
            && matches!(outcome, Outcome::OutOfMemory { .. })
        {
            live.record.phase = Phase::Recovering;
            self.changed(task, None);
        }
    }

    fn ran_out_of_memory(
        &mut self,
        task: TaskId,
        asked: Option<Bytes>,
        held: Option<Bytes>,
        evidence: &str,
    ) -> Outcome {
        let Some(live) = self.tasks.get_mut(&task) else { return Outcome::Failed };
        let (record, spec) = (&mut live.record, &live.spec);
        // The monitor may not have looked in time; the process knows what it had.
        record.peak = record.peak.max(held.unwrap_or_default());
        let expected = spec.gpu_memory.or(spec.estimate.map(|e| e.peak)).unwrap_or_default();
        let wanted = match asked {
            Some(asked) => record.peak + asked,
            None => record.peak.max(expected).scale(UNSAID),
        };
        record.ooms += 1;
        record.wanted = record.wanted.max(Some(wanted));
        let peak = record.peak;
        let what =
            format!("ran out of GPU memory with {peak} in use, wanting about {wanted}: {evidence}");
        record.reason = Some(format!("ran out of GPU memory, wanting about {wanted}"));
        let outcome = match spec.on_oom {
            OnOom::Policy | OnOom::Grow => Outcome::OutOfMemory { wanted },
            OnOom::Exclusive if record.ooms == 1 => {
                live.ending = Some(Ending::Again);
                Outcome::Failed
            }
            OnOom::Exclusive | OnOom::Fail => {
                live.ending = Some(Ending::Over(Phase::OutOfMemory));
                Outcome::Failed
            }
        };
        self.changed(task, Some(what));
        outcome
    }

    fn failed(&mut self, task: TaskId, verdict: Option<Verdict>) -> Outcome {
        let Some(live) = self.tasks.get_mut(&task) else { return Outcome::Failed };
        let record = &mut live.record;
        let retry = record.retried < live.spec.retries;
        let (phase, what) = match verdict {
            Some(Verdict::TimedOut) => {
                (Phase::TimedOut, "was stopped at its time limit".to_owned())
            }
            Some(Verdict::HostOutOfMemory(told)) => (Phase::Failed, out_of_host_memory(told)),
            Some(Verdict::Unstarted(why)) => (Phase::Failed, why),
            Some(_) => (Phase::Failed, "failed".to_owned()),
            None => (Phase::Lost, "vanished: its shim left no word of how it ended".to_owned()),
        };
        let what = match record.exit {
            Some(Exit::Code(code)) => format!("{what} (exit code {code})"),
            Some(Exit::Signal(signal)) => format!("{what} (signal {signal})"),
            None => what,
        };
        record.reason = Some(what.clone());
        live.ending = Some(if phase == Phase::Failed && retry {
            record.retried += 1;
            Ending::Again
        } else {
            Ending::Over(phase)
        });
        self.changed(task, Some(what));
        Outcome::Failed
    }

    /// The monitor looked at the GPUs.
    pub(super) fn seen(&mut self, now: Time, sighting: Sighting, wishes: &mut Vec<Effect>) {
        self.see_losses(now, &sighting, wishes);
        for &(gpu, used) in &sighting.foreign {
            let before = self.last_seen.foreign.iter().find(|(known, _)| *known == gpu);
            if before.map_or(Bytes::ZERO, |&(_, used)| used) != used {
                self.scheduler.note(now, Event::ForeignSeen { gpu, used }, wishes);
            }
        }
        for &(gpu, beside, limit) in &sighting.clients {
            if !self.last_seen.clients.contains(&(gpu, beside, limit)) {
                self.scheduler.note(now, Event::ClientsSeen { gpu, beside, limit }, wishes);
            }
        }
        for &(gpu, taken) in &sighting.slices {
            let before = self.last_seen.slices.iter().find(|(known, _)| *known == gpu);
            if before.map_or(Layout::default(), |&(_, taken)| taken) != taken {
                self.scheduler.note(now, Event::SlicesSeen { gpu, taken }, wishes);
            }
        }
        let left = self.just_left(now, &sighting);
        for &(gpu, signal) in sighting.gpus.iter().filter(|(gpu, _)| !left.contains(gpu)) {
            self.scheduler.note(now, Event::GpuSeen { gpu, signal }, wishes);
        }
        for &(task, used) in &sighting.tasks {
            if let Some(live) = self.tasks.get_mut(&task) {
                live.record.peak = live.record.peak.max(used);
                self.scheduler.note(now, Event::TaskSeen { task, used }, wishes);
            }
        }
        self.account(now, &sighting);
        self.stop_the_idle(now, &sighting, wishes);
        self.stop_the_greedy(now, &sighting);
        self.last_seen = sighting;
        if !self.launcher.sharing.partitions.is_empty() {
            let kept = self.instances_of_others(None);
            self.launcher.sweep_instances(now, &kept);
        }
    }
}
