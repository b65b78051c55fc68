//! What was decided, and what became of attempts, kept as data beside the story.

use super::Owner;
use crate::executor::outcome::Verdict;
use crate::journal::{EndedAttempt, Entry};
use crate::owner::commands::gpus::slowed_by;
use crate::record::{Exit, Intent, Record};
use coloc_api::moment::Moment;
use coloc_api::view::{
    AttemptView, DecisionGpu, DecisionKind, DecisionNews, DecisionView, NeighbourView, ReasonCode,
};
use coloc_core::{Decided, GpuVerdict, Opinion};
use coloc_model::{Bytes, Placement, TaskId, Time};

/// GPUs of one decision that are kept: the chosen ones, and those that came nearest.
const MOST_GPUS: usize = 16;

/// Tasks of the queue of which is kept why they wait: the others wait for those.
const FIRST: usize = 32;
/// Decisions to wait that are kept at once; what is left has its turn a second later.
const MOST_AT_ONCE: usize = 8;
/// Decisions to wait that are kept of a task until it starts: a reason may come and go every second.
const MOST_WAITS: u32 = 12;

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
            let decision = DecisionView { attempt, ..self.decision(decided, DecisionKind::Starts) };
            self.waiting.has_started(task);
            self.keep_decision(task, decision);
        }
    }

    /// Keeps what GPUs say to the first tasks of the queue, of those that wait for something else than before.
    pub(super) fn keep_waits(&mut self, now: Time) {
        // These are told of the daemon, not of each task.
        if self.draining || self.disk_full || self.is_paused() {
            return;
        }
        let first: Vec<TaskId> = self.scheduler.waiting().take(FIRST).collect();
        let mut room = MOST_AT_ONCE;
        for task in first {
            if self.find_code(now, task) {
                self.note_news(task);
            }
            // Tasks that go first are no rule of a GPU, and change with every start.
            let code = self.reason_code(task).filter(|code| *code != ReasonCode::Order);
            let Some(code) = code else { continue };
            if room == 0 || !self.waiting.is_to_be_kept(task, code, MOST_WAITS) {
                continue;
            }
            room -= 1;
            let Some(explained) = self.scheduler.explain(now, task) else { continue };
            let opinion = |GpuVerdict { gpu, refusals }| Opinion { gpu, refusals, score: None };
            let opinions = explained.verdicts.into_iter().map(opinion).collect();
            let decided = Decided { task, chosen: Vec::new(), opinions };
            let decision = self.decision(decided, DecisionKind::Waits);
            self.keep_decision(task, DecisionView { reason_code: Some(code), ..decision });
        }
    }

    fn keep_decision(&mut self, task: TaskId, decision: DecisionView) {
        self.pending.push(Entry::Decision(task, Box::new(decision.clone())));
        self.note_decision(DecisionNews { task: task.0, decision });
    }

    fn decision(&self, decided: Decided, kind: DecisionKind) -> DecisionView {
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
                (false, None) if kind == DecisionKind::Waits => "would take it".to_owned(),
                (false, None) => "would have taken it".to_owned(),
                (false, Some(first)) => first.text.clone(),
            };
            DecisionGpu { gpu: gpu.0, fits: refusals.is_empty(), score, text, refusals }
        });
        DecisionView {
            at_s: self.clock.world_now().secs(),
            attempt: None,
            kind,
            reason_code: None,
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
        ended: Moment,
    ) {
        let peak = self.attempt_peaks.remove(&task).unwrap_or(Bytes::ZERO);
        let Some(live) = self.tasks.get(&task) else { return };
        let record = &live.record;
        let Some(started) = record.started else { return };
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
            let state = self.scheduler.gpus().get(gpu);
            let (residents, share) = (state.residents(), state.share());
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
                    slows_this: known
                        .map(|own| if apart { 1.0 } else { slowed_by(share, own, other) }),
                    slowed_by_this: known
                        .map(|own| if apart { 1.0 } else { slowed_by(share, other, own) }),
                })
            })
        });
        beside.collect()
    }
}
