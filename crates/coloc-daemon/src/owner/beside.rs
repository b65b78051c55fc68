//! Those who are there when a task is launched, and what its coming changes for them.

use super::{Live, Owner};
use crate::launch::Beside;
use coloc_model::{Bytes, GpuId, Share, TaskId};

impl Owner {
    /// What a launch has to know of those who are there.
    pub(super) fn beside(&self, task: TaskId) -> Beside {
        let share = self.scheduler.policy().share;
        let held = |live: &Live| live.record.holds.as_ref()?.mps;
        Beside {
            instances: match share {
                Share::Mig => self.instances_of_others(Some(task)),
                _ => Vec::new(),
            },
            clients: match share {
                Share::Mps => {
                    let others = self.on_its_server(task).into_iter();
                    let holds = others.filter_map(|other| held(self.tasks.get(&other)?));
                    holds.map(|mps| mps.limits()).collect()
                }
                _ => Vec::new(),
            },
            booked: self.booked_to_share(task),
        }
    }

    /// The tasks that have the same MPS server: of the same user, on the same GPUs.
    fn on_its_server(&self, task: TaskId) -> Vec<TaskId> {
        let server = |live: &Live| {
            let placement = live.record.placement.as_ref()?;
            let mut gpus: Vec<GpuId> = placement.gpus().collect();
            gpus.sort_unstable();
            (placement.share == Share::Mps).then_some((live.record.owner, gpus))
        };
        let Some(own) = self.tasks.get(&task).and_then(server) else { return Vec::new() };
        let others = self.at_work().filter(|live| live.record.id != task);
        others
            .filter(|live| server(live).as_ref() == Some(&own))
            .map(|live| live.record.id)
            .collect()
    }

    /// The server of a task has another limit since it came: what holds its neighbours is said anew.
    pub(super) fn restate_holds(&mut self, task: TaskId, server_memory: Option<Bytes>) {
        for other in self.on_its_server(task) {
            let Some(live) = self.tasks.get_mut(&other) else { continue };
            let holds = live.record.holds.as_ref();
            let Some(anew) = holds.and_then(|holds| holds.with_server_memory(server_memory)) else {
                continue;
            };
            live.record.holds = Some(Box::new(anew));
            self.changed(other, None);
        }
    }
}
