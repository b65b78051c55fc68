//! Attempts that ended: how, and what becomes of their tasks.

use crate::executor::End;
use crate::executor::outcome::{HostMemory, Verdict};
use crate::owner::{Ending, Owner};
use crate::record::Exit;
use coloc_api::moment::Moment;
use coloc_core::eligibility::retry_pause;
use coloc_core::{Effect, Event};
use coloc_model::{Outcome, TaskId, TaskState, Time};

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
        None => "ran out of host memory, or was killed from outside".to_owned(),
    }
}

impl Owner {
    /// An attempt has ended: what becomes of its task?
    pub(in crate::owner) fn attempt_ended(
        &mut self,
        now: Time,
        task: TaskId,
        attempt: u32,
        end: End,
        effects: &mut Vec<Effect>,
    ) {
        let Some(live) = self.tasks.get(&task) else { return };
        // Another attempt is a matter of its own.
        if live.record.attempt != attempt || !live.record.phase.is_on_gpus() {
            return;
        }
        if let End::Unclear(why) = end {
            return self.is_unclear(task, &why);
        }
        self.roots_changed = true;
        self.seen_at.remove(&task);
        self.overdue.forget(task);
        let enforcement = self.executor.enforcement(&live.record);
        let (verdict, exit, told) = match end {
            End::Ended(verdict, exit, told) => (Some(verdict), exit, told),
            End::NeverBegan(why)
                if live.ending.is_none() && live.record.phase != TaskState::Preempting =>
            {
                return self.never_began(now, task, why, effects);
            }
            End::PrologFailed(why)
                if live.ending.is_none() && live.record.phase != TaskState::Preempting =>
            {
                return self.prolog_failed(now, task, &why, effects);
            }
            End::NeverBegan(_) | End::PrologFailed(_) | End::Vanished | End::Unclear(_) => {
                (None, None, None)
            }
        };
        let at = self.end_of_attempt(task, told);
        if verdict.is_some() {
            self.machine_is_well();
            self.hear_of_hooks(now, task, effects);
        }
        let verdict = self.for_its_memory(task, verdict);
        self.keep_attempt(task, verdict.as_ref(), exit, at);
        self.close_usage(task, at, matches!(verdict, Some(Verdict::GpuOutOfMemory { .. })));
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.exit = exit;
        live.record.enforcement = enforcement;
        let preempted = live.record.phase == TaskState::Preempting;
        // A task that completed before it was told to go has nothing left to do. A cancelled one is called cancelled.
        let completed = verdict == Some(Verdict::Completed) && !live.record.cancelled;
        match (live.ending, preempted) {
            (Some(_), _) if completed => {
                live.ending = Some(Ending::Over(TaskState::Completed));
                self.is_off_its_gpus(now, task, effects);
            }
            // It was to go, and it has gone.
            (Some(_), _) => self.is_off_its_gpus(now, task, effects),
            (None, true) if !completed => {
                live.record.phase = TaskState::Pending;
                live.record.placement = None;
                live.record.intent = None;
                self.changed(task, Some("is off its GPUs".to_owned()));
            }
            (None, _) => self.ended(now, task, verdict, effects),
        }
    }

    /// When an attempt ended: its shim knows, also of one that ended while no daemon ran.
    fn end_of_attempt(&self, task: TaskId, told: Option<Moment>) -> Moment {
        let now = self.clock.world_now();
        let started = self.tasks.get(&task).and_then(|live| live.record.started);
        // Clocks jump: it ended after it began, and before this is heard.
        told.map_or(now, |told| told.max(started.unwrap_or(told)).min(now))
    }

    /// A task that was to go has gone.
    fn is_off_its_gpus(&mut self, now: Time, task: TaskId, effects: &mut Vec<Effect>) {
        self.note_end(now, Event::Stopped(task), effects);
        let Some(live) = self.tasks.get_mut(&task) else { return };
        if !live.record.phase.is_on_gpus() {
            return;
        }
        // The scheduler had preempted it before, and has it in its queue; or it never heard of this attempt.
        live.record.phase = TaskState::Pending;
        live.record.placement = None;
        live.record.intent = None;
        let in_core = live.in_core;
        match live.ending {
            Some(Ending::Over(phase)) if !in_core => self.over(task, phase),
            Some(Ending::Over(_)) => self.note_end(now, Event::StopRequested(task), effects),
            Some(Ending::Again) | None => {
                live.ending = None;
                self.changed(task, Some("is off its GPUs".to_owned()));
                if !in_core {
                    self.eligibility.look_at(task);
                }
            }
        }
    }

    fn ended(
        &mut self,
        now: Time,
        task: TaskId,
        verdict: Option<Verdict>,
        effects: &mut Vec<Effect>,
    ) {
        let outcome = match verdict {
            Some(Verdict::Completed) => Outcome::Completed,
            Some(Verdict::GpuOutOfMemory { said, evidence }) => {
                self.ran_out_of_memory(task, &said, &evidence)
            }
            // A signal or an error of any kind may be what a lost GPU looks like from inside.
            Some(Verdict::Failed | Verdict::MpsTrouble(_) | Verdict::HostOutOfMemory(None))
                if self.lost_its_gpu(now, task, effects) =>
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
        self.note_end(now, Event::Ended { task, outcome }, effects);
        // A task that waits for another try is in the scheduler's hands again.
        if let Some(live) = self.tasks.get_mut(&task)
            && matches!(outcome, Outcome::OutOfMemory { .. })
        {
            live.record.phase = TaskState::Recovering;
            live.record.intent = None;
            self.changed(task, None);
        }
    }

    fn failed(&mut self, task: TaskId, verdict: Option<Verdict>) -> Outcome {
        let Some(live) = self.tasks.get_mut(&task) else { return Outcome::Failed };
        let record = &mut live.record;
        let retry = record.retried < live.spec.retries;
        let (phase, what) = match verdict {
            Some(Verdict::TimedOut) => {
                (TaskState::TimedOut, "was stopped at its time limit".to_owned())
            }
            Some(Verdict::HostOutOfMemory(told)) => (TaskState::Failed, out_of_host_memory(told)),
            Some(Verdict::Unstarted(why)) => (TaskState::Failed, why),
            Some(_) => (TaskState::Failed, "failed".to_owned()),
            None => (TaskState::Lost, "vanished: its shim left no word of how it ended".to_owned()),
        };
        let what = match record.exit {
            Some(Exit::Code(code)) => format!("{what} (exit code {code})"),
            Some(Exit::Signal(signal)) => format!("{what} (signal {signal})"),
            None => what,
        };
        record.reason = Some(what.clone());
        live.ending = Some(if phase == TaskState::Failed && retry {
            record.retried += 1;
            let pause = self.clock.world(retry_pause(record.retried)).as_millis() as u64;
            record.retry_at = record.started.map(|started| Moment(started.0.saturating_add(pause)));
            Ending::Again
        } else {
            Ending::Over(phase)
        });
        self.changed(task, Some(what));
        Outcome::Failed
    }
}
