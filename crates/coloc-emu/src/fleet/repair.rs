//! After a process died with the lock in its hands: what it left is checked and made whole.

use super::State;
use super::layout::{MAX_INSTANCES, MAX_PROCESSES, MAX_RESIDENTS};

impl State {
    /// Drops rows that point nowhere and makes every derived number anew from the rows that remain.
    pub(crate) fn repair(&mut self) {
        self.repairs = self.repairs.wrapping_add(1);
        self.gpu_count = self.gpu_count();
        let gpus = self.gpu_count;
        for resident in &mut self.residents {
            let owner = self.processes.get(resident.process as usize);
            let nowhere = resident.gpu >= gpus || resident.instance as usize > MAX_INSTANCES;
            if nowhere || owner.is_none_or(|process| process.used == 0) {
                resident.used = 0;
            }
        }
        for process in self.processes.iter_mut().filter(|process| process.used != 0) {
            for number in [&mut process.work_s, &mut process.rate] {
                if !number.is_finite() {
                    *number = 0.0;
                }
            }
        }
        (self.process_high, self.resident_high) = (MAX_PROCESSES as u32, MAX_RESIDENTS as u32);
        self.shrink();
        for index in 0..gpus {
            let held = self
                .resident_slots()
                .filter(|(_, resident)| resident.gpu == index)
                .fold(0u64, |sum, (_, resident)| sum.saturating_add(resident.held));
            let gpu = &mut self.gpus[index as usize];
            gpu.held = held;
            for number in [&mut gpu.energy_j, &mut gpu.celsius, &mut gpu.watts] {
                if !number.is_finite() {
                    *number = 0.0;
                }
            }
        }
        self.recompute();
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
