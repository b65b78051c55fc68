//! What residents make of their device, and the passing of time.

use super::State;
use super::layout::{Gpu, Process, Resident, Shares};
use super::telemetry::TEMPERATURE_TAU_S;
use coloc_model::mig::Instance;
use coloc_model::{Activity, Bytes, Fraction, Share, SignatureId};
use coloc_physics::{Part, PowerModel, Profile, Resident as Guest, SharedGpu};

/// One resident that works, and the group that it shares a part of the device with.
struct Worker {
    resident: usize,
    instance: u32,
    profile: Profile,
    part: Part,
    mps: bool,
    hung: bool,
}

impl State {
    /// Accounts for the time up to `now`, stopping where a process falls idle on the way.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        while self.settled_ns < now_ns {
            let idle_at = self
                .live_processes()
                .map(|process| process.busy_until_ns)
                .filter(|&until| until > self.settled_ns && until < now_ns)
                .min();
            self.account(idle_at.unwrap_or(now_ns));
            if idle_at.is_some() {
                self.recompute();
            }
        }
    }

    /// Lets time pass while nothing changes.
    fn account(&mut self, until_ns: u64) {
        let span_s = until_ns.saturating_sub(self.settled_ns) as f64 / 1e9;
        let warming = 1.0 - libm::exp(-span_s / TEMPERATURE_TAU_S);
        let gpus = self.gpu_count() as usize;
        for gpu in &mut self.gpus[..gpus] {
            gpu.energy_j += gpu.watts * span_s;
            gpu.share_seconds.add(gpu.shares, span_s);
            gpu.celsius += (gpu.settling_celsius() - gpu.celsius) * warming;
        }
        for process in self.processes_mut() {
            process.work_s += process.rate * span_s;
        }
        self.settled_ns = until_ns;
    }

    /// Works out speeds, activity and power anew. To be called after every change that can move them.
    pub(crate) fn recompute(&mut self) {
        self.touched = 1;
        for process in self.processes_mut() {
            process.rate = 1.0;
        }
        for index in 0..self.gpu_count() {
            for (resident, rate) in self.device_rates(index) {
                self.residents[resident].rate = rate;
                let slot = self.residents[resident].process as usize;
                // A gang is as fast as its slowest member.
                let process = &mut self.processes[slot];
                process.rate = process.rate.min(rate);
            }
        }
        for index in 0..self.gpu_count() {
            let shares = self.device_shares(index);
            let residents = self.residents_of(index).count();
            let gpu = &mut self.gpus[index as usize];
            let (model, limit) = (gpu.model(), gpu.limit_watts);
            let power = PowerModel::default().draw(model, residents, &shares.into());
            gpu.shares = shares;
            gpu.watts = if gpu.lost != 0 { 0.0 } else { power.watts().min(limit) };
        }
        let now = self.settled_ns;
        for process in self.processes_mut() {
            if process.busy_until_ns <= now || process.hung != 0 || process.ended != 0 {
                process.rate = 0.0;
            }
        }
    }

    /// The speed of each resident that works, as far as this device is concerned.
    fn device_rates(&self, index: u32) -> Vec<(usize, f64)> {
        let workers = self.workers(index);
        match self.gpus[index as usize].lost {
            0 => rates(&workers),
            _ => workers.iter().map(|worker| (worker.resident, 0.0)).collect(),
        }
    }

    /// What a monitor sees: residents at the speed that they really have.
    fn device_shares(&self, index: u32) -> Shares {
        let gpu = &self.gpus[index as usize];
        if gpu.lost != 0 {
            return Shares::default();
        }
        let workers = self.workers(index);
        let seen = workers.iter().map(|worker| {
            if worker.hung {
                return (one_endless_warp(gpu), 1.0);
            }
            let slot = self.residents[worker.resident].process as usize;
            (worker.profile.activity, self.processes[slot].rate)
        });
        SharedGpu::observed(seen).into()
    }

    fn residents_of(&self, index: u32) -> impl Iterator<Item = (usize, &Resident)> {
        self.resident_slots()
            .filter(move |(_, resident)| resident.gpu == index && resident.contexts != 0)
    }

    fn workers(&self, index: u32) -> Vec<Worker> {
        let gpu = &self.gpus[index as usize];
        let worker = |(at, resident): (usize, &Resident)| {
            let process = self.processes.get(resident.process as usize)?;
            let works = process.busy_until_ns > self.settled_ns && process.ended == 0;
            works.then(|| worker(gpu, at, resident, process))
        };
        self.residents_of(index).filter_map(worker).collect()
    }
}

/// A kernel that never ends keeps a device "utilized" with next to nothing running on it.
fn one_endless_warp(gpu: &Gpu) -> Activity {
    let sliver = Fraction::saturating(1.0 / f64::from(gpu.model().sms().max(1)));
    Activity { gpu: Fraction::ONE, sm: sliver, occupancy: Fraction::ZERO, dram: Fraction::ZERO }
}

fn worker(gpu: &Gpu, at: usize, resident: &Resident, process: &Process) -> Worker {
    let part = match resident.instance.checked_sub(1) {
        Some(slot) => instance_part(gpu, slot as usize, resident.compute as usize),
        None if process.mps != 0 && process.thread_share < 1.0 => {
            Part::Slice { sm: process.thread_share.max(0.01), bandwidth: 1.0 }
        }
        None => Part::Whole,
    };
    Worker {
        resident: at,
        instance: resident.instance,
        profile: process.profile(),
        part,
        mps: process.mps != 0,
        hung: process.hung != 0,
    }
}

fn instance_part(gpu: &Gpu, slot: usize, compute: usize) -> Part {
    let Some(instance) = gpu.instances.get(slot) else { return Part::Whole };
    let slices = instance.compute.get(compute).map_or(instance.slices, |own| own.slices);
    Part::of_instance(
        gpu.model(),
        Instance {
            compute: slices as u8,
            start: instance.start as u8,
            span: instance.span as u8,
            memory: Bytes(instance.memory),
        },
    )
}

/// The speed of each worker relative to being alone on the whole device.
fn rates(workers: &[Worker]) -> Vec<(usize, f64)> {
    let physics = SharedGpu::default();
    let mut rates = vec![(0, 0.0); workers.len()];
    let mut done = vec![false; workers.len()];
    for first in 0..workers.len() {
        if done[first] {
            continue;
        }
        let group: Vec<usize> = (first..workers.len())
            .filter(|&other| workers[other].instance == workers[first].instance)
            .collect();
        let alone: Vec<f64> = group.iter().map(|&i| rate_alone(&physics, &workers[i])).collect();
        // What each demands of the group's part of the device, at the speed that the part allows.
        let demands: Vec<Profile> =
            group.iter().zip(&alone).map(|(&i, &rate)| demand(&workers[i], rate)).collect();
        let guests: Vec<Guest<'_>> = demands
            .iter()
            .map(|profile| Guest { profile, signature: SignatureId(0), part: Part::Whole })
            .collect();
        // Contexts that are not all under MPS take turns.
        let share = if group.iter().all(|&i| workers[i].mps) { Share::Mps } else { Share::Streams };
        let mut together = Vec::new();
        physics.rates(share, &guests, &mut together);
        for ((&i, alone), together) in group.iter().zip(alone).zip(together) {
            rates[i] = (workers[i].resident, alone * together);
            done[i] = true;
        }
    }
    rates
}

fn rate_alone(physics: &SharedGpu, worker: &Worker) -> f64 {
    let guest = Guest { profile: &worker.profile, signature: SignatureId(0), part: worker.part };
    let mut rates = Vec::new();
    physics.rates(Share::Mig, &[guest], &mut rates);
    rates.first().copied().unwrap_or(1.0)
}

fn demand(worker: &Worker, rate: f64) -> Profile {
    // A MIG instance is a device of its own; a share of MPS threads is a part of the common one.
    let (sm, bandwidth) = match worker.part {
        Part::Slice { sm, bandwidth } if worker.instance != 0 => (sm, bandwidth),
        _ => (1.0, 1.0),
    };
    let mut profile = worker.profile;
    let Activity { gpu, sm: active, occupancy, dram } = profile.activity;
    let of = |share: Fraction, part: f64| Fraction::saturating(share.get() * rate / part);
    profile.activity = Activity {
        gpu,
        sm: of(active, sm),
        occupancy: of(occupancy, sm),
        dram: of(dram, bandwidth),
    };
    profile
}
