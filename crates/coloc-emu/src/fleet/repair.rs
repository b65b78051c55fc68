//! After a process died with the lock in its hands: what it left is checked and made whole.

use super::State;
use super::layout::{Gpu, MAX_INSTANCES, MAX_PROCESSES, MAX_RESIDENTS, Process};
use super::processes::ENDED_BY_REPAIR;
use crate::mig;

impl State {
    /// Drops rows that point nowhere or promise what is not there, and makes every derived number anew from the
    /// rows that remain.
    pub(crate) fn repair(&mut self, host_now_ns: u64) {
        self.repairs = self.repairs.wrapping_add(1);
        self.gpu_count = self.gpu_count();
        self.settled_ns = self.settled_ns.min(self.clock.now_ns(host_now_ns));
        let gpus = self.gpu_count;
        self.gpus[..gpus as usize].iter_mut().for_each(Gpu::repair);
        self.processes.iter_mut().for_each(Process::repair);
        for resident in &mut self.residents {
            let owner = self.processes.get(resident.process as usize);
            let nowhere = resident.gpu >= gpus || resident.instance as usize > MAX_INSTANCES;
            if nowhere || owner.is_none_or(|process| process.used == 0) {
                resident.used = 0;
            }
        }
        (self.process_high, self.resident_high) = (MAX_PROCESSES as u32, MAX_RESIDENTS as u32);
        for index in 0..gpus {
            self.repair_books(index);
        }
        self.shrink();
        self.recompute();
    }

    /// Sums up what residents hold; a resident that would exceed the capacity loses its context.
    fn repair_books(&mut self, index: u32) {
        let capacity = self.gpus[index as usize].model().memory().0;
        let mut held = 0u64;
        for at in 0..MAX_RESIDENTS {
            let resident = self.residents[at];
            if resident.used == 0 || resident.gpu != index {
                continue;
            }
            match held.checked_add(resident.held).filter(|sum| *sum <= capacity) {
                Some(sum) => held = sum,
                None => {
                    self.residents[at].used = 0;
                    self.processes[resident.process as usize].ended = ENDED_BY_REPAIR;
                }
            }
        }
        self.gpus[index as usize].held = held;
    }

    /// What must always hold; the tests ask after every step.
    pub fn sanity_check(&self) -> Result<(), String> {
        for (index, gpu) in self.gpus().iter().enumerate() {
            let held: u64 = self
                .resident_slots()
                .filter(|(_, resident)| resident.gpu as usize == index)
                .map(|(_, resident)| resident.held)
                .sum();
            if held != gpu.held {
                return Err(format!("GPU {index} books {} but residents hold {held}", gpu.held));
            }
            if held > gpu.model().memory().0 {
                return Err(format!("GPU {index} has promised {held}, more than it has"));
            }
            gpu.sane_instances().map_err(|what| format!("GPU {index}: {what}"))?;
        }
        Ok(())
    }
}

/// A number that a sum or a model can go on with.
fn sane(number: &mut f64, otherwise: f64) {
    if !number.is_finite() || *number < 0.0 {
        *number = otherwise;
    }
}

impl Process {
    fn repair(&mut self) {
        sane(&mut self.work_s, 0.0);
        sane(&mut self.rate, 0.0);
        sane(&mut self.sensitivity, 1.0);
        sane(&mut self.pressure, 1.0);
        sane(&mut self.thread_share, 1.0);
    }
}

impl Gpu {
    fn repair(&mut self) {
        sane(&mut self.energy_j, 0.0);
        sane(&mut self.celsius, 0.0);
        sane(&mut self.watts, 0.0);
        let sums = &mut self.share_seconds;
        for sum in [&mut sums.gpu, &mut sums.sm, &mut sums.occupancy, &mut sums.dram] {
            sane(sum, 0.0);
        }
        let highest = self.model().limit_watts();
        if !(0.0..=highest).contains(&self.limit_watts) {
            self.limit_watts = highest;
        }
        self.repair_instances();
    }

    /// Keeps instances that are of this board, lie where they may, and overlap no earlier one.
    fn repair_instances(&mut self) {
        let profiles = mig::profiles(self.model());
        let most = self.model().mig().map_or(0, |table| u32::from(table.compute_slices));
        let (mut taken, mut slices) = (0u16, 0u32);
        for instance in &mut self.instances {
            if instance.used == 0 {
                continue;
            }
            let legal = profiles.iter().any(|profile| {
                let starts = profile.starts().iter().map(|start| u32::from(*start));
                profile.id == instance.profile
                    && u32::from(profile.span()) == instance.span
                    && u32::from(profile.compute()) == instance.slices
                    && profile.memory().0 == instance.memory
                    && starts.clone().any(|start| start == instance.start)
            });
            let mask = mig::mask(instance.start as u8, instance.span as u8);
            if !legal || taken & mask != 0 || slices + instance.slices > most {
                instance.used = 0;
                continue;
            }
            taken |= mask;
            slices += instance.slices;
            let mut left = instance.slices;
            for compute in instance.compute.iter_mut().filter(|compute| compute.used != 0) {
                match left.checked_sub(compute.slices) {
                    Some(rest) if compute.slices > 0 => left = rest,
                    _ => compute.used = 0,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fleet::Place;
    use crate::fleet::layout::State;
    use crate::{Emulator, Options};
    use coloc_model::Bytes;
    use proptest::prelude::*;

    /// Writes a number somewhere, as a process might that loses its way.
    fn scribble(state: &mut State, place: u8, at: u8, value: u64) {
        let (row, small, real) = (usize::from(at), value as u32, f64::from_bits(value));
        let gpu = &mut state.gpus[row % 3];
        let resident = &mut state.residents[row];
        let process = &mut state.processes[row];
        let instance = &mut gpu.instances[row % 8];
        match place % 24 {
            0 => state.settled_ns = value,
            1 => state.process_high = small,
            2 => state.resident_high = small,
            3 => gpu.held = value,
            4 => gpu.model = small % 20,
            5 => gpu.watts = real,
            6 => gpu.energy_j = real,
            7 => gpu.limit_watts = real,
            8 => (resident.used, resident.process) = (1, small % 2000),
            9 => (resident.used, resident.gpu) = (1, small % 5),
            10 => (resident.used, resident.held) = (1, value),
            11 => (resident.used, resident.instance) = (1, small % 12),
            12 => resident.contexts = small,
            13 => process.used = 1,
            14 => process.alone.sm = real,
            15 => (process.sensitivity, process.pressure) = (real, real),
            16 => process.busy_until_ns = value,
            17 => process.thread_share = real,
            18 => process.mps = small,
            19 => (instance.used, instance.start) = (1, small),
            20 => (instance.used, instance.profile, instance.span) = (1, small % 21, small % 9),
            21 => instance.compute[row % 7].used = 1,
            22 => instance.compute[row % 7].slices = small,
            _ => gpu.mig_enabled = small % 2,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn scribbled_tables_become_whole(
            marks in prop::collection::vec((any::<u8>(), any::<u8>(), any::<u64>()), 1..40)
        ) {
            let folder = tempfile::tempdir().expect("temporary folder");
            let fleet = "2xA100-40GB,1xT4-16GB".parse().expect("a fleet");
            let emulator = Emulator::create(folder.path(), &fleet, Options::default());
            let emulator = emulator.expect("a new fleet");
            let mut state = emulator.lock().expect("free");
            for (place, at, value) in marks {
                scribble(&mut state, place, at, value);
            }
            let now = state.host_now_ns();
            state.repair(now);
            state.sanity_check().map_err(TestCaseError::fail)?;
            state.bring_up_to(now + 1_000_000_000);
            state.sanity_check().map_err(TestCaseError::fail)?;
            for index in 0..state.gpu_count() {
                let reading = state.gpu(index).expect("there").reading();
                prop_assert!(reading.shares.sm.is_finite());
                let _ = state.residents(Place::whole(index));
                let memory = state.memory(Place::whole(index));
                prop_assert!(memory.is_ok_and(|memory| memory.used <= memory.total));
            }
            let joined = state.join(crate::Identity::of_self()).expect("room");
            if state.open_context(joined.slot, Place::whole(2)).is_ok() {
                let _ = state.allocate(joined.slot, Place::whole(2), Bytes::from_mib(1));
            }
            state.sanity_check().map_err(TestCaseError::fail)?;
        }
    }
}
