//! Collocation as an experiment: tasks that start together on one device, until the last has ended.

use coloc_model::mig::{Layout, Profile as MigProfile};
use coloc_model::{Bytes, GpuModel, Millis, Share, SignatureId};
use coloc_physics::{Part, PowerModel, Profile, Resident, SharedGpu};
use serde::Serialize;

/// A task of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Participant {
    /// What it runs.
    pub signature: SignatureId,
    /// How it behaves.
    pub profile: Profile,
    /// How long it takes alone.
    pub alone: Millis,
}

/// How one device is divided among the tasks of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrangement {
    /// The mechanism.
    pub share: Share,
    /// The partition in words; empty where there is none.
    pub layout: String,
    /// Each task's part of the device.
    parts: Vec<Part>,
    /// Memory of each task's own instance; `None` where all share the device's.
    limits: Option<Vec<Bytes>>,
}

/// What came of an experiment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Findings {
    /// Time of all tasks one after the other, over the time together.
    pub throughput: f64,
    /// Mean over tasks of the time together over the time alone.
    pub slowdown_mean: f64,
    /// Mean SM activity until the last task ended.
    pub smact: f64,
    /// Mean power until the last task ended, in watts.
    pub power_w: f64,
    /// Energy together.
    pub energy_j: f64,
    /// Energy together over energy one after the other.
    pub energy_ratio: f64,
    /// Until the last task ended.
    pub makespan_s: f64,
}

impl Arrangement {
    /// The ways in which `share` can divide a device among so many tasks: one for streams and MPS; equal,
    /// mixed and memory-sharing instances for MIG.
    pub fn all(model: GpuModel, share: Share, tasks: usize) -> Vec<Arrangement> {
        if share != Share::Mig {
            let parts = vec![Part::Whole; tasks];
            return vec![Arrangement { share, layout: String::new(), parts, limits: None }];
        }
        let equal = equal_instances(model, tasks);
        let mixed = mixed_instances(model, tasks).filter(|mixed| Some(mixed) != equal.as_ref());
        equal.into_iter().chain(mixed).chain(shared_memory(model, tasks)).collect()
    }

    /// All tasks draw on one memory.
    pub fn shares_memory(&self) -> bool {
        self.limits.is_none()
    }

    /// Whether the memory of all tasks fits.
    pub fn fits(&self, model: GpuModel, tasks: &[Participant]) -> bool {
        match &self.limits {
            Some(limits) => {
                tasks.iter().zip(limits).all(|(task, &room)| task.profile.memory <= room)
            }
            None => memory(tasks) <= model.memory(),
        }
    }

    /// Plays the experiment.
    pub fn play(&self, gpu: &SharedGpu, model: GpuModel, tasks: &[Participant]) -> Findings {
        let power = PowerModel::default();
        let together = run(gpu, &power, model, self.share, tasks, &self.parts);
        let one_by_one: Vec<Totals> = tasks
            .iter()
            .map(|&task| run(gpu, &power, model, self.share, &[task], &[Part::Whole]))
            .collect();
        let sequential: f64 = one_by_one.iter().map(|totals| totals.seconds).sum();
        let sequential_j: f64 = one_by_one.iter().map(|totals| totals.energy_j).sum();
        let slowdowns = together.ends.iter().zip(tasks).map(|(end, task)| end / task.alone.secs());
        Findings {
            throughput: sequential / together.seconds,
            slowdown_mean: slowdowns.sum::<f64>() / tasks.len() as f64,
            smact: together.sm_seconds / together.seconds,
            power_w: together.energy_j / together.seconds,
            energy_j: together.energy_j,
            energy_ratio: together.energy_j / sequential_j,
            makespan_s: together.seconds,
        }
    }
}

/// Memory of all tasks together.
pub fn memory(tasks: &[Participant]) -> Bytes {
    tasks.iter().map(|task| task.profile.memory).sum()
}

#[derive(Default)]
struct Totals {
    ends: Vec<f64>,
    seconds: f64,
    sm_seconds: f64,
    energy_j: f64,
}

/// All tasks start at once; whenever one ends, the others get new speeds.
fn run(
    gpu: &SharedGpu,
    power: &PowerModel,
    model: GpuModel,
    share: Share,
    tasks: &[Participant],
    parts: &[Part],
) -> Totals {
    let mut left: Vec<f64> = tasks.iter().map(|task| task.alone.secs()).collect();
    let mut totals = Totals { ends: vec![0.0; tasks.len()], ..Totals::default() };
    let mut rates = Vec::new();
    loop {
        let running: Vec<usize> = (0..tasks.len()).filter(|&i| left[i] > 0.0).collect();
        let residents: Vec<Resident<'_>> = running
            .iter()
            .map(|&i| Resident {
                profile: &tasks[i].profile,
                signature: tasks[i].signature,
                part: parts[i],
            })
            .collect();
        gpu.rates(share, &residents, &mut rates);
        let ends_in = |(&i, &rate): (&usize, &f64)| left[i] / rate;
        let Some(span) = running.iter().zip(&rates).map(ends_in).reduce(f64::min) else { break };
        let busy = running.iter().zip(&rates).map(|(&i, &rate)| (tasks[i].profile.activity, rate));
        let activity = SharedGpu::observed(busy);
        totals.seconds += span;
        totals.sm_seconds += activity.sm.get() * span;
        totals.energy_j += power.draw(model, running.len(), &activity).watts() * span;
        for (&i, &rate) in running.iter().zip(&rates) {
            left[i] -= rate * span;
            // The task that set the span is done, whatever rounding says.
            if left[i] <= tasks[i].alone.secs() * 1e-12 {
                left[i] = 0.0;
                totals.ends[i] = totals.seconds;
            }
        }
    }
    totals
}

/// The largest instances of one size that so many tasks can have.
fn equal_instances(model: GpuModel, tasks: usize) -> Option<Arrangement> {
    let table = model.mig()?;
    table.profiles.iter().rev().find_map(|profile| instances(model, &vec![profile; tasks]))
}

/// Instances of different sizes that use as much of the board as possible: each gets the largest that
/// leaves a smallest one for every task after it.
fn mixed_instances(model: GpuModel, tasks: usize) -> Option<Arrangement> {
    let table = model.mig()?;
    // Of two profiles with as many SMs, the one with double memory only takes room from the others.
    let mut sizes: Vec<&MigProfile> = table.profiles.iter().collect();
    sizes.dedup_by_key(|profile| profile.compute);
    let smallest = *sizes.first()?;
    let mut chosen: Vec<&MigProfile> = Vec::new();
    for rest in (0..tasks).rev() {
        let fitting = sizes.iter().copied().rev().find(|profile| {
            let mut plan = chosen.clone();
            plan.push(profile);
            plan.extend(std::iter::repeat_n(smallest, rest));
            instances(model, &plan).is_some()
        })?;
        chosen.push(fitting);
    }
    instances(model, &chosen)
}

fn instances(model: GpuModel, profiles: &[&'static MigProfile]) -> Option<Arrangement> {
    let table = model.mig()?;
    let mut layout = Layout::default();
    let mut parts = Vec::new();
    for profile in profiles {
        let instance = layout.fit(table, profile)?;
        layout.create(instance);
        parts.push(Part::of_instance(model, instance));
    }
    let words: Vec<String> = profiles
        .chunk_by(|a, b| a.name == b.name)
        .map(|run| format!("{} x {}", run.len(), run[0].name))
        .collect();
    let limits = profiles.iter().map(|profile| profile.memory()).collect();
    Some(Arrangement { share: Share::Mig, layout: words.join(" + "), parts, limits: Some(limits) })
}

/// One GPU instance with a compute instance for each task: SMs of their own, memory in common.
fn shared_memory(model: GpuModel, tasks: usize) -> Option<Arrangement> {
    let table = model.mig()?;
    let slices = table.compute_slices / u8::try_from(tasks).ok()?;
    if tasks < 2 || slices == 0 {
        return None;
    }
    let parts = vec![Part::compute_instance(model, slices); tasks];
    let layout = format!("{tasks} x {slices}c, shared memory");
    Some(Arrangement { share: Share::Mig, layout, parts, limits: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_physics::published;

    fn copies(subject: &published::Subject, copies: usize) -> Vec<Participant> {
        let (profile, alone) = (subject.profile(), subject.duration());
        vec![Participant { signature: SignatureId(0), profile, alone }; copies]
    }

    #[test]
    fn an_a100_is_divided_as_people_divide_it() {
        let layouts = |tasks| -> Vec<String> {
            Arrangement::all(GpuModel::A100_40GB, Share::Mig, tasks)
                .into_iter()
                .map(|arrangement| arrangement.layout)
                .collect()
        };
        assert_eq!(layouts(1), ["1 x 7g.40gb"]);
        assert_eq!(
            layouts(2),
            ["2 x 3g.20gb", "1 x 4g.20gb + 1 x 3g.20gb", "2 x 3c, shared memory"]
        );
        assert_eq!(layouts(7), ["7 x 1g.5gb", "7 x 1c, shared memory"]);
        assert!(layouts(8).is_empty());
    }

    #[test]
    fn copies_reach_the_published_throughput() {
        let gpu = SharedGpu::default();
        for point in published::COPIES {
            let subject = published::find(point.subject).expect("a published subject");
            let tasks = copies(subject, point.copies);
            let arrangement = &Arrangement::all(GpuModel::A100_40GB, point.share, point.copies)[0];
            let found = arrangement.play(&gpu, GpuModel::A100_40GB, &tasks);
            let error = (found.throughput / point.throughput - 1.0).abs();
            assert!(error < 0.03, "{} x{}: {found:?}", point.subject, point.copies);
        }
    }

    #[test]
    fn seven_large_nets_do_not_fit() {
        let tasks = copies(&published::RESNET152, 7);
        for share in [Share::Streams, Share::Mps, Share::Mig] {
            for arrangement in Arrangement::all(GpuModel::A100_40GB, share, 7) {
                assert!(!arrangement.fits(GpuModel::A100_40GB, &tasks), "{arrangement:?}");
            }
        }
    }
}
