//! From tasks to instances.

use super::ComputeInstanceId;
use super::board::{Board, BoardProfile, ExistingInstance, GpuInstanceId, Place, ProfileKind};
use super::search::{self, Candidate};
use coloc_model::{Bytes, TaskId};
use serde::Serialize;

/// Sizes of compute instances that there are.
const COMPUTE_SIZES: [u8; 7] = [1, 2, 3, 4, 6, 7, 8];

/// A task in a GPU instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The task.
    pub task: TaskId,
    /// Compute slices that it needs at least.
    pub compute: u8,
}

/// Tasks that are to share one GPU instance. One alone gets the whole of it; several share its memory and each
/// get a compute instance of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Want {
    /// The tasks, of which there is at least one.
    pub members: Vec<Member>,
    /// Memory that they need together.
    pub memory: Bytes,
    /// A profile that was asked for by name.
    pub profile: Option<String>,
    /// Where it has to lie, with exactly the compute slices of its members: the scheduler keeps account of slices.
    pub place: Option<Place>,
}

impl Want {
    /// A task that gets an instance of its own.
    pub fn alone(task: TaskId, memory: Bytes, compute: u8) -> Self {
        Want { members: vec![Member { task, compute }], memory, profile: None, place: None }
    }

    /// A task whose instance was decided on elsewhere.
    pub fn placed(task: TaskId, compute: u8, place: Place) -> Self {
        Want { place: Some(place), ..Want::alone(task, Bytes::ZERO, compute) }
    }

    /// A task that asked for a profile.
    pub fn named(task: TaskId, profile: &str) -> Self {
        Want { profile: Some(profile.to_owned()), ..Want::alone(task, Bytes::ZERO, 1) }
    }

    /// The sizes of the compute instances in an instance of `compute` slices, if they fit.
    fn split(&self, compute: u8) -> Option<Vec<u8>> {
        if let [_] = self.members[..] {
            return Some(vec![compute]);
        }
        let size =
            |member: &Member| COMPUTE_SIZES.into_iter().find(|&size| size >= member.compute.max(1));
        let sizes: Vec<u8> = self.members.iter().map(size).collect::<Option<_>>()?;
        let total: u32 = sizes.iter().map(|&size| u32::from(size)).sum();
        (total <= u32::from(compute)).then_some(sizes)
    }

    fn compute(&self) -> u32 {
        self.members.iter().map(|member| u32::from(member.compute.max(1))).sum()
    }
}

/// Why a set of tasks cannot have its instances.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MigRefusal {
    /// A want has no tasks to get anything.
    #[error("want {want} has no tasks")]
    NoTasks {
        /// Its position.
        want: usize,
    },
    /// The board has no such profile.
    #[error("this board has no profile {name:?}; it has {}", known.join(", "))]
    NoSuchProfile {
        /// The name that was asked for.
        name: String,
        /// The board's names.
        known: Vec<String>,
    },
    /// No profile is large enough.
    #[error(
        "no instance of this board has {memory} and {compute} compute slices; the largest is {largest}"
    )]
    TooLarge {
        /// The position of the want.
        want: usize,
        /// Memory that it needs.
        memory: Bytes,
        /// Compute slices that it needs.
        compute: u32,
        /// The largest profile.
        largest: String,
    },
    /// The board has nothing like what was decided on.
    #[error(
        "this board has no instance of {compute} compute slices on {span} memory slices from slice {start} on"
    )]
    NoSuchPlace {
        /// Compute slices.
        compute: u32,
        /// The first memory slice.
        start: u8,
        /// Memory slices.
        span: u8,
    },
    /// There may be only so many of a profile.
    #[error("{wanted} of {profile} are wanted, and the board holds {most}")]
    TooMany {
        /// The profile.
        profile: String,
        /// How many are wanted, instances in use included.
        wanted: u32,
        /// How many there may be.
        most: u32,
    },
    /// The compute slices do not suffice.
    #[error("{wanted} compute slices are wanted, and {free} of {total} are not in use")]
    ComputeSlices {
        /// Slices of the smallest instances that would do.
        wanted: u32,
        /// Slices that are not in use.
        free: u32,
        /// Slices of the board.
        total: u32,
    },
    /// The memory slices do not suffice.
    #[error("{wanted} memory slices are wanted, and {free} of {total} are not in use")]
    MemorySlices {
        /// Slices of the smallest instances that would do.
        wanted: u32,
        /// Slices that are not in use.
        free: u32,
        /// Slices of the board.
        total: u32,
    },
    /// There are enough slices, but instances may start only at some of them.
    #[error("{wanted} would suffice in slices but cannot be laid out beside {beside}")]
    NoLayout {
        /// The profiles that are wanted.
        wanted: String,
        /// What is on the board and in use.
        beside: String,
    },
}

/// Where a want goes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Assignment {
    /// The id of the profile.
    pub profile: u32,
    /// Where it lies.
    pub place: Place,
    /// The instance that is there already, if one is reused.
    pub reused: Option<GpuInstanceId>,
    /// Compute slices by member.
    pub slices: Vec<u8>,
}

/// One change to a board.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Step {
    /// An idle compute instance goes.
    DestroyCompute {
        /// Its GPU instance.
        gi: GpuInstanceId,
        /// Its number.
        ci: ComputeInstanceId,
    },
    /// An idle GPU instance goes.
    DestroyInstance(GpuInstanceId),
    /// A GPU instance is made for a want.
    CreateInstance {
        /// The position of the want.
        want: usize,
        /// The id of the profile.
        profile: u32,
        /// Where.
        place: Place,
    },
    /// A compute instance is made for a member of a want.
    CreateCompute {
        /// The position of the want.
        want: usize,
        /// The position of the member.
        member: usize,
        /// How large.
        slices: u8,
    },
}

/// What is to be done so that every want has its instance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MigPlan {
    /// One a want, in the order of the wants.
    pub assignments: Vec<Assignment>,
    /// What to do, in order.
    pub steps: Vec<Step>,
}

/// Finds instances for all wants, or says why there are none: the smallest that suffice, idle ones of the same
/// profile reused, idle ones in the way destroyed, larger ones only when nothing smaller fits. Instances
/// in use are never touched.
pub fn plan(board: &Board, wants: &[Want]) -> Result<MigPlan, MigRefusal> {
    let candidates: Vec<Vec<Candidate>> = wants
        .iter()
        .enumerate()
        .map(|(at, want)| candidates(board, at, want))
        .collect::<Result<_, _>>()?;
    let chosen = search::layout(board, &candidates).ok_or_else(|| refusal(board, &candidates))?;
    let assignments: Vec<Assignment> = wants
        .iter()
        .zip(chosen)
        .map(|(want, choice)| {
            let profile = &board.profiles[choice.profile];
            let reused = choice.reused.map(|at| board.instances[at].id);
            let slices = want.split(profile.compute).unwrap_or_default();
            Assignment { profile: profile.id, place: choice.place, reused, slices }
        })
        .collect();
    let steps = steps(board, &assignments);
    Ok(MigPlan { assignments, steps })
}

/// The profiles that a want can live with, smallest first.
fn candidates(board: &Board, at: usize, want: &Want) -> Result<Vec<Candidate>, MigRefusal> {
    if want.members.is_empty() {
        return Err(MigRefusal::NoTasks { want: at });
    }
    if let Some(name) = &want.profile
        && !board.profiles.iter().any(|profile| profile.name == *name)
    {
        let known = board.profiles.iter().map(|profile| profile.name.clone()).collect();
        return Err(MigRefusal::NoSuchProfile { name: name.clone(), known });
    }
    let suits = |profile: &BoardProfile| {
        let asked_for = match &want.profile {
            Some(name) => profile.name == *name,
            None => profile.kind == ProfileKind::Plain,
        };
        asked_for
            && profile.memory >= want.memory
            && u32::from(profile.compute) >= want.compute()
            && want.split(profile.compute).is_some()
            && want.place.is_none_or(|place| {
                profile.places.contains(&place) && u32::from(profile.compute) == want.compute()
            })
    };
    let suitable: Vec<usize> =
        (0..board.profiles.len()).filter(|&at| suits(&board.profiles[at])).collect();
    let Some(&smallest) = suitable.first() else {
        if let Some(place) = want.place {
            let compute = want.compute();
            return Err(MigRefusal::NoSuchPlace { compute, start: place.start, span: place.span });
        }
        let largest = board.profiles.last().map_or("none", |profile| profile.name.as_str());
        return Err(MigRefusal::TooLarge {
            want: at,
            memory: want.memory,
            compute: want.compute(),
            largest: largest.to_owned(),
        });
    };
    let least = board.profiles[smallest].span();
    let candidate = |profile: usize| Candidate {
        profile,
        waste: board.profiles[profile].span() - least,
        place: want.place,
    };
    Ok(suitable.into_iter().map(candidate).collect())
}

/// Why there is no layout: the first bound that is exceeded.
fn refusal(board: &Board, candidates: &[Vec<Candidate>]) -> MigRefusal {
    let busy: Vec<&ExistingInstance> = board.instances.iter().filter(|i| i.busy).collect();
    let wanted: Vec<&BoardProfile> =
        candidates.iter().map(|list| &board.profiles[list[0].profile]).collect();
    for profile in &board.profiles {
        let used = busy.iter().filter(|instance| instance.profile == profile.id).count();
        // A want that could take another profile is not held up by this one's limit.
        let bound = candidates
            .iter()
            .filter(|list| list.len() == 1 && board.profiles[list[0].profile].id == profile.id);
        let count = (bound.count() + used) as u32;
        if count > profile.most {
            let (profile, most) = (profile.name.clone(), profile.most);
            return MigRefusal::TooMany { profile, wanted: count, most };
        }
    }
    let compute_of = |instance: &&ExistingInstance| {
        board.profile(instance.profile).map_or(0, |profile| u32::from(profile.compute))
    };
    let total = u32::from(board.compute_slices());
    let free = total.saturating_sub(busy.iter().map(compute_of).sum());
    let sum: u32 = wanted.iter().map(|profile| u32::from(profile.compute)).sum();
    if sum > free {
        return MigRefusal::ComputeSlices { wanted: sum, free, total };
    }
    let total = u32::from(board.memory_slices());
    let used = busy.iter().fold(0u16, |mask, instance| mask | instance.place.mask());
    let free = total.saturating_sub(used.count_ones());
    let sum: u32 = wanted.iter().map(|profile| u32::from(profile.span())).sum();
    if sum > free {
        return MigRefusal::MemorySlices { wanted: sum, free, total };
    }
    let names: Vec<&str> = wanted.iter().map(|profile| profile.name.as_str()).collect();
    let beside = Board::new(board.profiles.clone(), busy.into_iter().cloned().collect());
    MigRefusal::NoLayout { wanted: names.join(" + "), beside: beside.to_string() }
}

fn steps(board: &Board, assignments: &[Assignment]) -> Vec<Step> {
    let mut steps = Vec::new();
    for instance in search::in_the_way(board, assignments) {
        let gi = instance.id;
        steps.extend(instance.computes.iter().map(|ci| Step::DestroyCompute { gi, ci: ci.id }));
        steps.push(Step::DestroyInstance(gi));
    }
    // The largest first, as the driver's own advice has it.
    let mut order: Vec<usize> = (0..assignments.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(assignments[at].place.span), at));
    for want in order {
        let Assignment { profile, place, reused, ref slices } = assignments[want];
        let existing = reused.and_then(|gi| board.instances.iter().find(|i| i.id == gi));
        let fits = existing.is_some_and(|instance| {
            instance.computes.iter().map(|ci| ci.slices).eq(slices.iter().copied())
        });
        match existing {
            Some(_) if fits => continue,
            Some(instance) => steps.extend(
                instance
                    .computes
                    .iter()
                    .map(|ci| Step::DestroyCompute { gi: instance.id, ci: ci.id }),
            ),
            None => steps.push(Step::CreateInstance { want, profile, place }),
        }
        let members = slices.iter().enumerate();
        steps.extend(members.map(|(member, &slices)| Step::CreateCompute { want, member, slices }));
    }
    steps
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;
