//! The search for a layout: small enough to be exact. A board has eight slices and seven instances.

use super::board::{Board, ExistingInstance, Place};
use super::plan::Assignment;
use std::collections::HashSet;

/// A profile that a want can live with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    /// Its position in the board's list.
    pub(super) profile: usize,
    /// Memory slices beyond those of the smallest that would do.
    pub(super) waste: u8,
    /// The only place that will do.
    pub(super) place: Option<Place>,
}

/// What a want was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    pub(super) profile: usize,
    pub(super) place: Place,
    /// The position of the instance that is reused.
    pub(super) reused: Option<usize>,
}

/// Slices that are taken, and how many there are of each profile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Taken {
    memory: u16,
    compute: u8,
    reused: u64,
    of_profile: Vec<u8>,
}

/// Instances that are looked at for reuse: more than slices.
const MOST_REUSED: usize = 64;

struct Search<'a> {
    board: &'a Board,
    candidates: &'a [Vec<Candidate>],
    /// Wants, the largest first.
    order: Vec<usize>,
    /// Idle instances may be destroyed.
    may_destroy: bool,
    /// States that led nowhere.
    dead: HashSet<(usize, u8, Taken)>,
}

/// A choice for every want: with as little waste as possible, then without destroying anything if possible.
pub(super) fn layout(board: &Board, candidates: &[Vec<Candidate>]) -> Option<Vec<Choice>> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let size = |&want: &usize| {
        let profile = &board.profiles[candidates[want][0].profile];
        std::cmp::Reverse((profile.span(), profile.compute))
    };
    order.sort_by_key(|want| (size(want), *want));
    for waste in 0..=board.memory_slices() {
        for may_destroy in [false, true] {
            let dead = HashSet::new();
            let mut search = Search { board, candidates, order: order.clone(), may_destroy, dead };
            let start = search.start();
            let mut chosen = vec![None; candidates.len()];
            if search.place(0, waste, start, &mut chosen) {
                return chosen.into_iter().collect();
            }
        }
    }
    None
}

impl Search<'_> {
    /// What is taken before anything is placed: what is in use, and what is idle unless it may go.
    fn start(&self) -> Taken {
        let of_profile = vec![0; self.board.profiles.len()];
        let mut taken = Taken { memory: 0, compute: 0, reused: 0, of_profile };
        for instance in self.board.instances.iter().filter(|i| i.busy || !self.may_destroy) {
            taken.memory |= instance.place.mask();
            if let Some(at) = self.profile_at(instance) {
                let compute = self.board.profiles[at].compute;
                taken.compute = taken.compute.saturating_add(compute);
                taken.of_profile[at] = taken.of_profile[at].saturating_add(1);
            }
        }
        taken
    }

    fn profile_at(&self, instance: &ExistingInstance) -> Option<usize> {
        self.board.profiles.iter().position(|profile| profile.id == instance.profile)
    }

    /// Places the wants from `depth` on.
    fn place(
        &mut self,
        depth: usize,
        waste: u8,
        taken: Taken,
        chosen: &mut [Option<Choice>],
    ) -> bool {
        let Some(&want) = self.order.get(depth) else { return true };
        let state = (depth, waste, taken);
        if self.dead.contains(&state) {
            return false;
        }
        let taken = &state.2;
        let affordable: Vec<Candidate> =
            self.candidates[want].iter().copied().filter(|c| c.waste <= waste).collect();
        for candidate in affordable {
            for (choice, next) in self.options(candidate, taken) {
                chosen[want] = Some(choice);
                if self.place(depth + 1, waste - candidate.waste, next, chosen) {
                    return true;
                }
            }
        }
        self.dead.insert(state);
        false
    }

    /// Every way to have a profile now: idle instances of it, then new ones, later starts first, because the low
    /// slices are the only ones that the large profiles can use.
    fn options(&self, candidate: Candidate, taken: &Taken) -> Vec<(Choice, Taken)> {
        let Candidate { profile, place: only, .. } = candidate;
        let suits = |place: Place| only.is_none_or(|only| only == place);
        let shape = &self.board.profiles[profile];
        let mut options = Vec::new();
        let idle = self.board.instances.iter().enumerate().filter(|(at, instance)| {
            let free = *at < MOST_REUSED && taken.reused & (1 << at) == 0;
            !instance.busy && instance.profile == shape.id && free && suits(instance.place)
        });
        for (at, instance) in idle {
            let mut next = taken.clone();
            next.reused |= 1 << at;
            // Where idle ones may be destroyed they were not counted as taken.
            let free = taken.memory & instance.place.mask() == 0;
            if self.may_destroy && (!free || !take(&mut next, self.board, profile, instance.place))
            {
                continue;
            }
            options.push((Choice { profile, place: instance.place, reused: Some(at) }, next));
        }
        for &place in shape.places.iter().rev().filter(|&&place| suits(place)) {
            let mut next = taken.clone();
            if taken.memory & place.mask() == 0 && take(&mut next, self.board, profile, place) {
                options.push((Choice { profile, place, reused: None }, next));
            }
        }
        options
    }
}

/// Takes the slices of an instance; false if the board's compute slices or the profile's number forbid it.
fn take(taken: &mut Taken, board: &Board, profile: usize, place: Place) -> bool {
    let shape = &board.profiles[profile];
    taken.memory |= place.mask();
    taken.compute = taken.compute.saturating_add(shape.compute);
    taken.of_profile[profile] = taken.of_profile[profile].saturating_add(1);
    taken.compute <= board.compute_slices() && u32::from(taken.of_profile[profile]) <= shape.most
}

/// The idle instances that a layout has no room for: those that it overlaps, and then the largest of those whose
/// compute slices, or whose number, it needs.
pub(super) fn in_the_way<'a>(
    board: &'a Board,
    assignments: &[Assignment],
) -> Vec<&'a ExistingInstance> {
    let new = assignments.iter().filter(|assignment| assignment.reused.is_none());
    let mask = new.clone().fold(0u16, |mask, assignment| mask | assignment.place.mask());
    let kept = |instance: &&ExistingInstance| {
        instance.busy || assignments.iter().any(|a| a.reused == Some(instance.id))
    };
    let compute_of = |id: u32| board.profile(id).map_or(0, |p| u32::from(p.compute));
    let mut compute: u32 = new.clone().map(|assignment| compute_of(assignment.profile)).sum();
    compute += board.instances.iter().filter(kept).map(|i| compute_of(i.profile)).sum::<u32>();
    let mut idle: Vec<&ExistingInstance> =
        board.instances.iter().filter(|instance| !kept(instance)).collect();
    idle.sort_by_key(|instance| compute_of(instance.profile));
    let mut of_profile: Vec<u32> = new.map(|assignment| assignment.profile).collect();
    of_profile.extend(board.instances.iter().filter(kept).map(|instance| instance.profile));
    let mut leaving = Vec::new();
    for instance in idle {
        let most = board.profile(instance.profile).map_or(0, |profile| profile.most);
        let same = of_profile.iter().filter(|&&id| id == instance.profile).count() as u32;
        let fits = compute + compute_of(instance.profile) <= u32::from(board.compute_slices());
        if instance.place.mask() & mask != 0 || !fits || same >= most {
            leaving.push(instance);
        } else {
            compute += compute_of(instance.profile);
            of_profile.push(instance.profile);
        }
    }
    leaving
}
