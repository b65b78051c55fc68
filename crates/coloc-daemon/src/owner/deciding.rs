//! What was decided, and what became of attempts, kept as data beside the story.

use super::Owner;
use crate::executor::outcome::Verdict;
use crate::journal::{EndedAttempt, Entry};
use crate::owner::commands::gpus::slowed_by;
use crate::record::{Exit, Intent, Record};
use coloc_api::view::{
    AttemptView, DecisionGpu, DecisionKind, DecisionNews, DecisionView, NeighbourView,
};
use coloc_core::{Decided, GpuVerdict, Opinion};
use coloc_model::{Bytes, Placement, TaskId};

/// GPUs of one decision that are kept: the chosen ones, and those that came nearest.
const MOST_GPUS: usize = 16;

/// The MIG instance of a placement, if it has one.
fn instance(placement: Option<&Placement>) -> Option<String> {
    let slots = placement.into_iter().flat_map(|placement| placement.slots.iter());
    slots.filter_map(|slot| slot.instance).map(|instance| instance.to_string()).next()
}

/// An attempt by what is known of its task while it runs.
pub(crate) fn running_attempt(record: &Record) -> AttemptView {
    AttemptView {
        number: record.attempt,
        gpus: record.placement.iter().flat_map(Placement::gpus).map(|gpu| gpu.0).collect(),
        instance: instance(record.placement.as_ref()),
        started_s: record.started.map(coloc_api::moment::Moment::secs),
        peak_bytes: record.peak.0,
        promised_bytes: record.memory.as_ref().and_then(|m| m.promised).map(|p| p.bytes.0),
        ..AttemptView::default()
    }
}

/// How an attempt ended, in a word.
fn outcome(intent: Option<Intent>, verdict: Option<&Verdict>) -> &'static str {
    match (intent, verdict) {
        (_, Some(Verdict::Completed)) => "completed",
        (Some(Intent::Cancel), _) => "cancelled",
        (Some(Intent::Requeue), _) => "requeued",
        (Some(Intent::Preempt), _) => "preempted",
        (Some(Intent::TimeLimit), _) | (_, Some(Verdict::TimedOut)) => "timeout",
        (Some(Intent::Memory), _) | (_, Some(Verdict::GpuOutOfMemory { .. })) => "oom",
        (Some(Intent::Idle), _) => "idle",
        (Some(Intent::Loss), _) | (_, Some(Verdict::MpsTrouble(_)) | None) => "lost",
        (_, Some(Verdict::HostOutOfMemory(_))) => "host_oom",
        (_, Some(_)) => "failed",
    }
}

impl Owner {
    /// Keeps what GPUs said to tasks that the scheduler has just started.
    pub(super) fn keep_decisions(&mut self) {
        for decided in self.scheduler.take_decisions() {
            let Some(live) = self.tasks.get(&decided.task) else { continue };
            let (task, attempt) = (decided.task, Some(live.record.attempt + 1));
            let decision = self.decision(decided, attempt);
            self.pending.push(Entry::Decision(task, Box::new(decision.clone())));
            self.note_decision(DecisionNews { task: task.0, decision });
        }
    }

    fn decision(&self, decided: Decided, attempt: Option<u32>) -> DecisionView {
        let Decided { chosen, mut opinions, .. } = decided;
        let all = opinions.len();
        if all > MOST_GPUS {
            // The best first; of those that refused, the ones with the fewest rules against it.
            let worth = |opinion: &Opinion| {
                (!chosen.contains(&opinion.gpu), opinion.refusals.len(), opinion.gpu)
            };
            opinions.sort_by_key(worth);
            opinions.truncate(MOST_GPUS);
            opinions.sort_by_key(|opinion| opinion.gpu);
        }
        let left_out = (all - opinions.len()) as u32;
        let gpus = opinions.into_iter().map(|opinion| {
            let Opinion { gpu, refusals, score } = opinion;
            let refusals = self.rules(&GpuVerdict { gpu, refusals });
            let text = match (chosen.contains(&gpu), refusals.first()) {
                (true, _) => "chosen".to_owned(),
                (false, None) => "would have taken it".to_owned(),
                (false, Some(first)) => first.text.clone(),
            };
            DecisionGpu { gpu: gpu.0, fits: refusals.is_empty(), score, text, refusals }
        });
        DecisionView {
            at_s: self.clock.world_now().secs(),
            attempt,
            kind: DecisionKind::Starts,
            gpus: gpus.collect(),
            chosen: chosen.iter().map(|gpu| gpu.0).collect(),
            left_out,
        }
    }

    /// An attempt has ended: it is kept as data.
    pub(super) fn keep_attempt(
        &mut self,
        task: TaskId,
        verdict: Option<&Verdict>,
        exit: Option<Exit>,
    ) {
        let peak = self.attempt_peaks.remove(&task).unwrap_or(Bytes::ZERO);
        let Some(live) = self.tasks.get(&task) else { return };
        let record = &live.record;
        let Some(started) = record.started else { return };
        let ended = self.clock.world_now();
        let outcome = outcome(record.intent, verdict);
        let view = AttemptView {
            ended_s: Some(ended.secs()),
            outcome: Some(outcome.to_owned()),
            exit_code: exit.map(Exit::shell_code),
            peak_bytes: peak.0,
            ooms: u32::from(outcome == "oom"),
            ..running_attempt(record)
        };
        self.pending.push(Entry::Attempt(Box::new(EndedAttempt { task, started, ended, view })));
    }

    /// Tasks that are on the GPUs of a task now.
    pub(super) fn neighbours(&self, task: TaskId) -> Vec<NeighbourView> {
        let Some(live) = self.tasks.get(&task).filter(|live| live.record.phase.is_on_gpus()) else {
            return Vec::new();
        };
        let gpus = live.record.placement.iter().flat_map(Placement::gpus);
        let own_start = live.record.started;
        let beside = gpus.flat_map(|gpu| {
            let residents = self.scheduler.gpus().get(gpu).residents();
            let own = residents.iter().find(|booking| booking.task == task);
            let others = residents.iter().filter(move |booking| booking.task != task);
            others.filter_map(move |other| {
                let neighbour = self.tasks.get(&other.task)?;
                let began = neighbour.record.started.max(own_start)?;
                let apart = other.instance.is_some();
                let knows = |task| self.scheduler.knows_load(task);
                let known = own.filter(|_| apart || knows(task) && knows(other.task));
                let seen = self.sample(gpu).and_then(|sample| sample.memory_of(other.task));
                Some(NeighbourView {
                    id: other.task.0,
                    name: neighbour.spec.name.clone(),
                    user: crate::users::name(neighbour.record.owner),
                    gpu: gpu.0,
                    since_s: began.secs(),
                    until_s: None,
                    used_bytes: seen.unwrap_or(neighbour.record.peak).0,
                    slows_this: known.map(|own| if apart { 1.0 } else { slowed_by(own, other) }),
                    slowed_by_this: known
                        .map(|own| if apart { 1.0 } else { slowed_by(other, own) }),
                })
            })
        });
        beside.collect()
    }
}
