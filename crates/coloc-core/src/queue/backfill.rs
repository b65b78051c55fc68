//! EASY backfilling: the head is promised the earliest time at which running tasks, by their declared
//! durations, will have made room; later tasks may start now only if that promise does not move.
//!
//! Whoever is gone by then moves nothing. Whoever is not may start where the head would still find its
//! GPUs, and that depends on what it asks for, not on how long it stays: it is worked out once a shape.

use super::Shape;
use crate::demand::Demand;
use crate::place::{Gang, Search};
use crate::policy::{Gate, MemoryBasis, Place, Policy};
use crate::scheduler::{Turn, World};
use crate::screen::Case;
use coloc_model::{GpuId, NodeId, TaskId, Time};
use rustc_hash::FxHashMap;

/// How many waiting tasks are tried behind the head in one pass, as Slurm's `bf_max_job_test` bounds it.
const DEPTH: usize = 500;

pub(crate) fn run(world: &mut World, turn: &mut Turn) {
    super::fifo::run(world, turn);
    let Some(head) = world.head() else { return };
    // Where whole GPUs are given and none is free, nobody can start.
    if turn.is_over() || (world.policy.needs_idle() && world.gpus.idle() == 0) {
        return;
    }
    let outlook = Outlook::new(world, head, turn.now);
    // A head whose start nobody can foresee might be delayed by anybody; one that has no GPUs to start on, by nobody.
    if outlook.promised != Time::NEVER || !world.has_gpus_in_service(&outlook.head) {
        let stays_out = vec![false; world.widest as usize + 1];
        Round { outlook, chances: FxHashMap::default(), stays_out }.run(world, turn);
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
    fn new(world: &World, head: TaskId, now: Time) -> Self {
        let head = world.demand(head);
        let node = |gpu| node_of(world, &head, gpu);
        let free_at = |gpu| free_at(world, gpu, now, &head, None);
        // GPUs of one node stand together.
        let mut times: Vec<(NodeId, Time)> =
            world.gpus.ids().map(|gpu| (node(gpu), free_at(gpu))).collect();
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
    fn losses(&self, world: &World, now: Time, task: &Demand, gpus: &[GpuId]) -> Losses {
        let mut losses: Losses = Vec::new();
        for &gpu in gpus {
            let by_then =
                |newcomer| free_at(world, gpu, now, &self.head, newcomer) <= self.promised;
            if by_then(None) && !by_then(Some(task)) {
                let node = node_of(world, &self.head, gpu);
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
    /// These GPUs; whoever stays longer than promised takes some of them from the head.
    Room { gpus: Gang, losses: Losses, harmless: bool },
}

/// One look through the backlog.
struct Round {
    outlook: Outlook,
    chances: FxHashMap<Shape, Chance>,
    /// By number of GPUs, where these are merely counted: whoever stays longer than promised cannot start.
    stays_out: Vec<bool>,
}

impl Round {
    fn run(&mut self, world: &mut World, turn: &mut Turn) {
        let whole = world.policy.needs_idle();
        // The head itself is one of them.
        for entry in world.waiting.first(DEPTH + 1) {
            if entry.task == self.outlook.head.task || (whole && entry.gpus > world.gpus.idle()) {
                continue;
            }
            if world.over_quota(entry.task).is_some() {
                continue;
            }
            let ends = match entry.span {
                Some(span) if !world.policy.learn => turn.now + span,
                _ => world.expected_end(entry.task, turn.now),
            };
            let is_gone = ends <= self.outlook.promised;
            if is_gone || !self.stays_out[entry.gpus as usize] {
                self.consider(world, turn, entry.task, is_gone);
            }
            if turn.is_over() || (whole && world.gpus.idle() == 0) {
                break;
            }
        }
    }

    fn consider(&mut self, world: &mut World, turn: &mut Turn, task: TaskId, is_gone: bool) {
        let shape = world.shape(&world.tasks.live(task).task);
        let chance = match self.chances.remove(&shape) {
            Some(chance) => chance,
            None => self.chance(world, turn, task),
        };
        match chance {
            Chance::Room { gpus, losses, harmless } if is_gone || harmless => {
                world.start(turn, &world.demand(task), &gpus);
                if !is_gone {
                    self.outlook.lose(&losses);
                }
                // What is full stays full; what had room is to be asked again.
                self.chances.retain(|_, chance| matches!(chance, Chance::NoRoom));
            }
            chance => {
                // Where GPUs are merely counted, what the head can spare only shrinks in a pass.
                let alike = world.gpus.are_alike() && !world.models.matter();
                let counted = world.policy.place == Place::Any && alike;
                self.stays_out[shape.gpus as usize] |= counted;
                self.chances.insert(shape, chance);
            }
        }
    }

    fn chance(&self, world: &mut World, turn: &mut Turn, task: TaskId) -> Chance {
        let demand = world.demand(task);
        let found = world.find(turn, &demand, Search::Everywhere);
        let Some(gpus) = found else { return Chance::NoRoom };
        let losses = self.outlook.losses(world, turn.now, &demand, &gpus);
        let harmless = self.outlook.stands(&losses);
        Chance::Room { gpus, losses, harmless }
    }
}

/// The node of a GPU, where it matters to the head.
fn node_of(world: &World, head: &Demand, gpu: GpuId) -> NodeId {
    let wide = head.gpus as usize > world.fleet.widest_node() || !head.packed;
    match world.policy.place {
        Place::Any => NodeId(0),
        Place::Consolidate if wide => NodeId(0),
        _ => world.gpus.get(gpu).node,
    }
}

/// When one GPU, perhaps with a newcomer that stays, could take the head: its tasks leave one by one, as
/// expected, on a copy of its ledger, until every rule that does not depend on the moment is content.
pub(crate) fn free_at(
    world: &World,
    gpu: GpuId,
    now: Time,
    head: &Demand,
    newcomer: Option<&Demand>,
) -> Time {
    let state = world.gpus.get(gpu);
    if state.is_out() {
        return Time::NEVER;
    }
    if head.idle_only && head.need <= state.capacity {
        // All have to go.
        let ends = state.residents().iter().map(|booking| world.expected_end(booking.task, now));
        return if newcomer.is_some() { Time::NEVER } else { ends.fold(now, Time::max) };
    }
    let gate = match world.policy.gate {
        gate @ Gate::Expected { .. } => gate,
        _ => Gate::Open,
    };
    let policy = &Policy { gate, memory: MemoryBasis::Ledger, ..world.policy };
    let mut imagined = state.clone();
    imagined.reserved = None;
    imagined.busy_until = now;
    let mut leaving: Vec<(Time, TaskId)> = imagined
        .residents()
        .iter()
        .map(|booking| (world.expected_end(booking.task, now), booking.task))
        .collect();
    leaving.sort_unstable();
    if let Some(demand) = newcomer {
        let slot = world.slot(gpu, demand);
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
