//! EASY backfilling: the head is promised the earliest time at which running tasks, by their declared
//! durations, will have made room; later tasks may start now only if that promise does not move.
//!
//! A task that is gone by then moves nothing. Any other may start where the head would still find its
//! GPUs, and that depends on what it asks for, not on how long it stays: it is worked out once a shape.

use super::Shape;
use crate::demand::Demand;
use crate::place::{Gang, Search};
use crate::policy::{Gate, MemoryBasis, Place, Policy};
use crate::scheduler::{Pass, SchedulerState};
use crate::screen::Case;
use coloc_model::{GpuId, NodeId, TaskId, Time};
use rustc_hash::FxHashMap;

/// How many waiting tasks are tried behind the head in one pass, as Slurm's `bf_max_job_test` bounds it.
const DEPTH: usize = 500;

pub(crate) fn run(scheduler: &mut SchedulerState, pass: &mut Pass) {
    super::fifo::run(scheduler, pass);
    let Some(head) = scheduler.head() else { return };
    // Where whole GPUs are given and none is free, no task can start.
    if pass.is_over() || (scheduler.policy.needs_idle() && scheduler.gpus.idle() == 0) {
        return;
    }
    let outlook = Outlook::new(scheduler, head, pass.now);
    // A head whose start cannot be foreseen might be delayed by any task; one that has no GPUs to start on, by none.
    if outlook.promised != Time::NEVER || !scheduler.has_gpus_in_service(&outlook.head) {
        let stays_out = vec![false; scheduler.widest as usize + 1];
        Round { outlook, chances: FxHashMap::default(), stays_out }.run(scheduler, pass);
    }
}

/// When the head can start, and where.
struct Outlook {
    head: Demand,
    promised: Time,
    /// GPUs of each node that will have room for the head by then.
    ready: Vec<(NodeId, usize)>,
}

impl Outlook {
    fn new(scheduler: &SchedulerState, head: TaskId, now: Time) -> Self {
        let head = scheduler.demand(head);
        let node = |gpu| node_of(scheduler, &head, gpu);
        let free_at = |gpu| free_at(scheduler, gpu, now, &head, None);
        // GPUs of one node stand together.
        let mut times: Vec<(NodeId, Time)> =
            scheduler.gpus.ids().map(|gpu| (node(gpu), free_at(gpu))).collect();
        let last = head.gpus as usize - 1;
        let mut promised = Time::NEVER;
        for node in times.chunk_by_mut(|a, b| a.0 == b.0).filter(|node| node.len() > last) {
            promised = promised.min(node.select_nth_unstable(last).1.1);
        }
        let ready = |node: &[(NodeId, Time)]| {
            (node[0].0, node.iter().filter(|&&(_, at)| at <= promised).count())
        };
        let ready = times.chunk_by(|a, b| a.0 == b.0).map(ready).collect();
        Outlook { head, promised, ready }
    }

    /// How many GPUs of each node the head would lose for good to a task there.
    fn losses(
        &self,
        scheduler: &SchedulerState,
        now: Time,
        task: &Demand,
        gpus: &[GpuId],
    ) -> Losses {
        let mut losses: Losses = Vec::new();
        for &gpu in gpus {
            let by_then =
                |newcomer| free_at(scheduler, gpu, now, &self.head, newcomer) <= self.promised;
            if by_then(None) && !by_then(Some(task)) {
                let node = node_of(scheduler, &self.head, gpu);
                match losses.iter_mut().find(|(of, _)| *of == node) {
                    Some((_, lost)) => *lost += 1,
                    None => losses.push((node, 1)),
                }
            }
        }
        losses
    }

    fn stands(&self, losses: &Losses) -> bool {
        let lost = |node| losses.iter().find(|(of, _)| *of == node).map_or(0, |&(_, lost)| lost);
        self.ready.iter().any(|&(node, ready)| ready >= self.head.gpus as usize + lost(node))
    }

    fn lose(&mut self, losses: &Losses) {
        for &(node, lost) in losses {
            if let Some((_, ready)) = self.ready.iter_mut().find(|(of, _)| *of == node) {
                *ready -= lost;
            }
        }
    }
}

/// GPUs that the head would lose, by node.
type Losses = Vec<(NodeId, usize)>;

/// What the tasks of a shape can expect now.
enum Chance {
    /// Nothing in this pass.
    NoRoom,
    /// These GPUs; a task that stays beyond the promised time takes some of them from the head.
    Room { gpus: Gang, losses: Losses, harmless: bool },
}

/// One look through the backlog.
struct Round {
    outlook: Outlook,
    chances: FxHashMap<Shape, Chance>,
    /// By number of GPUs, where these are merely counted: a task that stays beyond the promised time cannot start.
    stays_out: Vec<bool>,
}

impl Round {
    fn run(&mut self, scheduler: &mut SchedulerState, pass: &mut Pass) {
        let whole = scheduler.policy.needs_idle();
        // The head itself is one of them.
        for entry in scheduler.waiting.first(DEPTH + 1) {
            if entry.task == self.outlook.head.task || (whole && entry.gpus > scheduler.gpus.idle())
            {
                continue;
            }
            if scheduler.is_barred(entry.task) {
                continue;
            }
            let ends = match entry.span {
                Some(span) if !scheduler.policy.learn => pass.now + span,
                _ => scheduler.expected_end(entry.task, pass.now),
            };
            let is_gone = ends <= self.outlook.promised;
            if is_gone || !self.stays_out[entry.gpus as usize] {
                self.consider(scheduler, pass, entry.task, is_gone);
            }
            if pass.is_over() || (whole && scheduler.gpus.idle() == 0) {
                break;
            }
        }
    }

    fn consider(
        &mut self,
        scheduler: &mut SchedulerState,
        pass: &mut Pass,
        task: TaskId,
        is_gone: bool,
    ) {
        let shape = scheduler.shape(&scheduler.tasks.live(task).task);
        let chance = match self.chances.remove(&shape) {
            Some(chance) => chance,
            None => self.chance(scheduler, pass, task),
        };
        match chance {
            Chance::Room { gpus, losses, harmless } if is_gone || harmless => {
                scheduler.start(pass, &scheduler.demand(task), &gpus);
                if !is_gone {
                    self.outlook.lose(&losses);
                }
                // What is full stays full; what had room is to be asked again.
                self.chances.retain(|_, chance| matches!(chance, Chance::NoRoom));
            }
            chance => {
                // Where GPUs are merely counted, what the head can spare only shrinks in a pass.
                let alike = scheduler.gpus.are_alike() && !scheduler.bindings_matter();
                let counted = scheduler.policy.place == Place::Any && alike;
                self.stays_out[shape.gpus as usize] |= counted;
                self.chances.insert(shape, chance);
            }
        }
    }

    fn chance(&self, scheduler: &mut SchedulerState, pass: &mut Pass, task: TaskId) -> Chance {
        let demand = scheduler.demand(task);
        let found = scheduler.find(pass, &demand, Search::Everywhere);
        let Some(gpus) = found else { return Chance::NoRoom };
        let losses = self.outlook.losses(scheduler, pass.now, &demand, &gpus);
        let harmless = self.outlook.stands(&losses);
        Chance::Room { gpus, losses, harmless }
    }
}

/// The node of a GPU, where it matters to the head.
fn node_of(scheduler: &SchedulerState, head: &Demand, gpu: GpuId) -> NodeId {
    let wide = head.gpus as usize > scheduler.fleet.widest_node() || !head.packed;
    match scheduler.policy.place {
        Place::Any => NodeId(0),
        Place::Consolidate if wide => NodeId(0),
        _ => scheduler.gpus.get(gpu).node,
    }
}

/// When one GPU, perhaps with a newcomer that stays, could take the head: its tasks leave one by one, as
/// expected, on a copy of its ledger, until every rule that does not depend on the moment is content.
pub(crate) fn free_at(
    scheduler: &SchedulerState,
    gpu: GpuId,
    now: Time,
    head: &Demand,
    newcomer: Option<&Demand>,
) -> Time {
    let state = scheduler.gpus.get(gpu);
    if state.is_out() || !head.may_have(state) {
        return Time::NEVER;
    }
    if head.idle_only && head.need <= state.capacity {
        // All have to go.
        let ends =
            state.residents().iter().map(|booking| scheduler.expected_end(booking.task, now));
        return if newcomer.is_some() { Time::NEVER } else { ends.fold(now, Time::max) };
    }
    let gate = match scheduler.policy.gate {
        gate @ Gate::Expected { .. } => gate,
        _ => Gate::Open,
    };
    let policy = &Policy { gate, memory: MemoryBasis::Ledger, ..scheduler.policy };
    let mut imagined = state.clone();
    imagined.reserved = None;
    imagined.busy_until = now;
    let mut leaving: Vec<(Time, TaskId)> = imagined
        .residents()
        .iter()
        .map(|booking| (scheduler.expected_end(booking.task, now), booking.task))
        .collect();
    leaving.sort_unstable();
    if let Some(demand) = newcomer {
        let slot = scheduler.slot(gpu, demand);
        imagined.book(now, imagined.booking(demand, slot.instance));
    }
    let mut leaving = leaving.into_iter();
    let mut at = now;
    while (Case { policy, state: &imagined, now, demand: head }).refusal().is_some() {
        let Some((ends, task)) = leaving.next() else { return Time::NEVER };
        at = at.max(ends);
        imagined.release(now, task);
    }
    at
}
