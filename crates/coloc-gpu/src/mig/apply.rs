//! Carrying out a plan, step by step, through the driver.

use super::board::{Board, ComputeInstanceId, ExistingInstance, GpuInstanceId, Place};
use super::plan::{MigPlan, MigRefusal, Step, Want, plan};
use crate::device::Uuid;
use crate::driver::{Driver, DriverError};
use coloc_model::TaskId;
use serde::Serialize;

/// Tasks did not get their instances.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApplyError {
    /// There is no plan.
    #[error(transparent)]
    Refused(#[from] MigRefusal),
    /// The mode can be changed on an idle GPU only.
    #[error(
        "MIG mode can be changed on an idle GPU only, and {} has a context on it; stop it, or drain the GPU first",
        pids.iter().map(|pid| format!("PID {pid}")).collect::<Vec<_>>().join(", ")
    )]
    NotIdle {
        /// The processes on it.
        pids: Vec<u32>,
    },
    /// The mode changes when the GPU is reset.
    #[error(
        "MIG mode changes only when the GPU is reset: stop what holds the device (nvidia-persistenced, DCGM), \
         then `nvidia-smi --gpu-reset`"
    )]
    AfterReset,
    /// The driver refused a step. Steps before it were done, and undone as far as they had made something.
    #[error("{0}")]
    Driver(#[from] DriverError),
}

/// A task and the device that it was given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Given {
    /// The task.
    pub task: TaskId,
    /// What goes into its `CUDA_VISIBLE_DEVICES`.
    pub device: Uuid,
    /// The GPU instance.
    pub gpu_instance: GpuInstanceId,
    /// The compute instance.
    pub compute_instance: ComputeInstanceId,
}

/// What became of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Applied {
    /// The plan.
    pub plan: MigPlan,
    /// Which task was given what, by want and member.
    pub given: Vec<Given>,
}

/// Turns MIG mode on, if the GPU is idle.
pub fn enable(driver: &mut dyn Driver, index: u32) -> Result<(), ApplyError> {
    set_mode(driver, index, true)
}

/// Turns MIG mode off, if the GPU is idle. Its instances go first.
pub fn disable(driver: &mut dyn Driver, index: u32) -> Result<(), ApplyError> {
    idle(driver, index)?;
    for instance in driver.mig_board(index)?.instances {
        destroy(driver, index, &instance)?;
    }
    set_mode(driver, index, false)
}

/// Destroys the instance at a place unless a process is in it; says whether there is none any more.
pub fn remove(driver: &mut dyn Driver, index: u32, place: Place) -> Result<bool, ApplyError> {
    let mut board = driver.mig_board(index)?;
    board.mark_busy(&driver.processes(index)?);
    let Some(instance) = board.instances.iter().find(|instance| instance.place == place) else {
        return Ok(true);
    };
    if instance.busy {
        return Ok(false);
    }
    let destroyed = destroy(driver, index, instance);
    // A process came since.
    if matches!(destroyed, Err(DriverError::InUse { .. })) {
        Ok(false)
    } else {
        Ok(destroyed.map(|()| true)?)
    }
}

fn destroy(
    driver: &mut dyn Driver,
    index: u32,
    instance: &ExistingInstance,
) -> Result<(), DriverError> {
    for compute in &instance.computes {
        driver.destroy_compute(index, instance.id, compute.id)?;
    }
    driver.destroy_instance(index, instance.id)
}

fn idle(driver: &mut dyn Driver, index: u32) -> Result<(), ApplyError> {
    let mut pids: Vec<u32> = driver.processes(index)?.iter().map(|process| process.pid).collect();
    pids.dedup();
    if pids.is_empty() { Ok(()) } else { Err(ApplyError::NotIdle { pids }) }
}

fn set_mode(driver: &mut dyn Driver, index: u32, on: bool) -> Result<(), ApplyError> {
    if driver.vitals(index)?.mig.is_on() == on {
        return Ok(());
    }
    idle(driver, index)?;
    match driver.set_mig(index, on) {
        Ok(()) => Ok(()),
        Err(DriverError::ResetRequired) => Err(ApplyError::AfterReset),
        // A process came since, or holds the device without a context.
        Err(error @ DriverError::InUse { .. }) => {
            idle(driver, index)?;
            Err(error.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives every want its instance on a GPU in MIG mode. If a step fails, what was made is unmade. What lies at one of
/// the places in `kept` is a task's that may not have come yet, and counts as in use.
pub fn apply(
    driver: &mut dyn Driver,
    index: u32,
    wants: &[Want],
    kept: &[Place],
) -> Result<Applied, ApplyError> {
    let mut board: Board = driver.mig_board(index)?;
    board.mark_busy(&driver.processes(index)?);
    board.mark_kept(kept);
    let plan = plan(&board, wants)?;
    let mut work = Work { index, made: Vec::new(), instances: vec![None; wants.len()] };
    for (slot, assignment) in work.instances.iter_mut().zip(&plan.assignments) {
        *slot = assignment.reused;
    }
    let mut computes = members(&board, &plan);
    for &step in &plan.steps {
        if let Err(error) = work.carry_out(driver, step, &mut computes) {
            work.undo(driver);
            return Err(error.into());
        }
    }
    let given = work.given(driver, wants, &computes);
    if given.is_err() {
        work.undo(driver);
    }
    Ok(Applied { given: given?, plan })
}

type Computes = Vec<Vec<Option<ComputeInstanceId>>>;

/// The compute instances that reused instances bring along.
fn members(board: &Board, plan: &MigPlan) -> Computes {
    let of = |assignment: &super::plan::Assignment| {
        let instance = board.instances.iter().find(|i| Some(i.id) == assignment.reused);
        let mut computes = vec![None; assignment.slices.len()];
        if let Some(instance) = instance {
            for (slot, compute) in computes.iter_mut().zip(&instance.computes) {
                *slot = Some(compute.id);
            }
        }
        computes
    };
    plan.assignments.iter().map(of).collect()
}

struct Work {
    index: u32,
    /// What was made, oldest first.
    made: Vec<(GpuInstanceId, Option<ComputeInstanceId>)>,
    /// The GPU instance of every want.
    instances: Vec<Option<GpuInstanceId>>,
}

const UNPLANNED: DriverError = DriverError::NotFound { what: "the instance of a plan" };

impl Work {
    fn carry_out(
        &mut self,
        driver: &mut dyn Driver,
        step: Step,
        computes: &mut Computes,
    ) -> Result<(), DriverError> {
        match step {
            Step::DestroyCompute { gi, ci } => driver.destroy_compute(self.index, gi, ci),
            Step::DestroyInstance(gi) => driver.destroy_instance(self.index, gi),
            Step::CreateInstance { want, profile, place } => {
                let gi = driver.create_instance(self.index, profile, place)?;
                self.made.push((gi, None));
                self.instances[want] = Some(gi);
                Ok(())
            }
            Step::CreateCompute { want, member, slices } => {
                let gi = self.instances[want].ok_or(UNPLANNED)?;
                let ci = driver.create_compute(self.index, gi, slices)?;
                self.made.push((gi, Some(ci)));
                computes[want][member] = Some(ci);
                Ok(())
            }
        }
    }

    /// Unmakes what was made, newest first.
    fn undo(&self, driver: &mut dyn Driver) {
        for &(gi, ci) in self.made.iter().rev() {
            // Best effort: the error that matters is the one that is reported.
            let _ = match ci {
                Some(ci) => driver.destroy_compute(self.index, gi, ci),
                None => driver.destroy_instance(self.index, gi),
            };
        }
    }

    fn given(
        &self,
        driver: &mut dyn Driver,
        wants: &[Want],
        computes: &Computes,
    ) -> Result<Vec<Given>, DriverError> {
        let devices = driver.mig_devices(self.index)?;
        let mut given = Vec::new();
        for ((want, gi), computes) in wants.iter().zip(&self.instances).zip(computes) {
            let gpu_instance = gi.ok_or(UNPLANNED)?;
            for (member, ci) in want.members.iter().zip(computes) {
                let compute_instance = ci.ok_or(UNPLANNED)?;
                let device = devices.iter().find(|device| {
                    (device.gpu_instance, device.compute_instance)
                        == (gpu_instance, compute_instance)
                });
                let device = device.ok_or(UNPLANNED)?.uuid.clone();
                given.push(Given { task: member.task, device, gpu_instance, compute_instance });
            }
        }
        Ok(given)
    }
}
