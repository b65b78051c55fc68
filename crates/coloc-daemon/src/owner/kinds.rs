//! Kinds of GPU that a task may run on. The scheduler keeps what runs nowhere else from others by what it is told of
//! speeds: on those that a task may not have, it does not run.

use super::{Owner, Refused};
use crate::kinds::is_of_kind;
use crate::spec::TaskSpec;
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{Bytes, GpuModel, SignatureId, Time};

/// The most kinds that one task may name, and the longest name.
const MOST: (usize, usize) = (16, 64);
/// Before the kinds in what a task is known by: a control character, which is in no command that people type.
const MARK: char = '\u{1e}';

fn may_have(spec: &TaskSpec, model: GpuModel) -> bool {
    spec.gpu_kinds.is_empty() || spec.gpu_kinds.iter().any(|kind| is_of_kind(model.name(), kind))
}

impl Owner {
    /// What the scheduler knows a task by: what it runs, and where it may.
    pub(super) fn signature(
        &mut self,
        now: Time,
        spec: &TaskSpec,
        wishes: &mut Vec<Effect>,
    ) -> SignatureId {
        let plain = spec.signature();
        if spec.gpu_kinds.is_empty() {
            return self.names.number(plain);
        }
        let models = self.fleet.gpus().iter().map(|gpu| gpu.model);
        let barred: Vec<GpuModel> = models.filter(|&model| !may_have(spec, model)).collect();
        let mut names: Vec<&str> = barred.iter().map(|model| model.name()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return self.names.number(plain);
        }
        let known = format!("{plain}{MARK}{}", names.join(","));
        let signature = self.names.number(known);
        let is_new = barred.iter().any(|&model| self.barred.speed(signature, model).is_some());
        if is_new {
            barred.iter().for_each(|&model| self.barred.insert(signature, model, 0.0));
            let policy = *self.scheduler.policy();
            let empty = Scheduler::new(&self.fleet, policy);
            let scheduler = std::mem::replace(&mut self.scheduler, empty);
            self.scheduler = scheduler.with_speeds(self.barred.clone());
            // What was measured of it counts wherever it runs.
            if let Ok(Some(lesson)) = self.journal.lesson(&plain) {
                self.scheduler.note(now, Event::Taught { signature, lesson }, wishes);
            }
        }
        signature
    }

    /// Everything that a command is known by: wherever it may run, and on some kinds alone.
    pub(super) fn all_signatures(&mut self, plain: &str) -> Vec<SignatureId> {
        let number = self.names.number(plain.to_owned());
        let limited = self.names.beginning_with(&format!("{plain}{MARK}"));
        limited.into_iter().chain([number]).collect()
    }

    /// There are so many GPUs of the kinds that a task names, and they have the memory.
    pub(super) fn check_kinds(&self, spec: &TaskSpec) -> Result<(), Refused> {
        if spec.gpu_kinds.is_empty() {
            return Ok(());
        }
        let (many, long) = MOST;
        if spec.gpu_kinds.len() > many || spec.gpu_kinds.iter().any(|kind| kind.len() > long) {
            let what = format!("a task names at most {many} kinds of GPU, each in {long} bytes");
            return Err(Refused::Invalid(what));
        }
        let models = || self.fleet.gpus().iter().map(|gpu| gpu.model);
        let mut fit: Vec<Bytes> =
            models().filter(|&m| may_have(spec, m)).map(GpuModel::memory).collect();
        fit.sort_unstable_by(|a, b| b.cmp(a));
        let kinds = spec.gpu_kinds.join(" or ");
        if fit.len() < spec.gpus as usize {
            let mut there: Vec<&str> = models().map(GpuModel::name).collect();
            there.sort_unstable();
            there.dedup();
            return Err(Refused::Invalid(format!(
                "GPUs of kind {kinds}: it needs {} and there are {}; here are {}",
                spec.gpus,
                fit.len(),
                there.join(", ")
            )));
        }
        let largest = fit.get((spec.gpus as usize).saturating_sub(1)).copied().unwrap_or_default();
        match spec.gpu_memory {
            Some(need) if need > largest => Err(Refused::Invalid(format!(
                "no GPU of kind {kinds} has {need}: the largest that {} at once have is {largest}",
                spec.gpus
            ))),
            _ => Ok(()),
        }
    }
}
