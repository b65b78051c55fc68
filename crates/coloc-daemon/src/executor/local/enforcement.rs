//! What holds a task to what it was given: its control group, and whatever enforces its GPU memory.

use super::LocalExecutor;
use super::cgroup::{Controller, GroupLimits, TaskGroup};
use super::sharing::Admitted;
use crate::executor::MemoryLimit;
use crate::record::Record;
use coloc_api::spec::TaskSpec;
use coloc_api::view::{Containment, EnforcementView, MpsEnforcementView};
use coloc_gpu::enforce::{Dmem, Enforcement, Facilities, Promise, cap, declare};
use coloc_model::{Bytes, Placement, Share, TaskId};

impl MemoryLimit {
    /// For people, where nothing limits a task.
    fn why_none(self) -> &'static str {
        match self {
            MemoryLimit::Bytes(_) | MemoryLimit::Unsaid => "none: it did not say what it needs",
            MemoryLimit::Alone => "none: it has its GPUs to itself",
            MemoryLimit::Lifted => "none: it ran out of memory, and its limit was lifted",
        }
    }
}

impl LocalExecutor {
    /// The control group of an attempt with its limits, or why it has none.
    pub(super) fn make_group(
        &self,
        record: &Record,
        spec: &TaskSpec,
    ) -> Result<(TaskGroup, GroupLimits), String> {
        let groups = self.groups.as_ref().map_err(Clone::clone)?;
        let made = groups.make(record.id, record.attempt, spec.host_memory, spec.layout.cpus());
        made.map_err(|error| format!("its control group could not be made: {error}"))
    }

    /// Declares the enforcement of an attempt. A limit that does not read back holds nothing.
    pub(super) fn declare(
        &self,
        record: &Record,
        spec: &TaskSpec,
        group: &Result<(TaskGroup, GroupLimits), String>,
        limit: MemoryLimit,
        client: Option<&Admitted>,
    ) -> EnforcementView {
        let memory = limit.bytes();
        let placement = record.placement.as_ref();
        let share = placement.map_or(Share::Exclusive, |placement| placement.share);
        let dmem = memory.zip(group.as_ref().ok());
        let facilities = Facilities {
            dmem: dmem.is_some_and(|(memory, (group, _))| self.limit_dmem(record, group, memory)),
            mps: client.is_some(),
            mps_server: client.and_then(|client| client.server_memory),
            watchdog: share != Share::Exclusive && !spec.exclusive,
        };
        let promise = self.promise(record, spec, memory);
        let (containment, processes) = match (group, &self.groups) {
            (Ok(_), Ok(groups)) => (groups.containment(), groups.says()),
            (Err(why), _) | (_, Err(why)) => (Containment::Session, format!("session: {why}")),
        };
        EnforcementView {
            containment,
            processes,
            dmem: facilities.dmem,
            gpu_memory: match memory.or(promise.instance) {
                Some(_) => declare(&promise, &facilities).says(),
                None => limit.why_none().to_owned(),
            },
            host_memory: group.as_ref().ok().and_then(|(_, limits)| limits.memory),
            cpus: group.as_ref().ok().and_then(|(_, limits)| limits.cpus.clone()),
            mps: client.map(|client| MpsEnforcementView {
                memory,
                server_memory: client.server_memory,
                threads_percent: spec.sm_percent,
                server: client.server,
            }),
            sms: spec.sm_percent.map(|percent| match client {
                Some(_) => format!("mps: {percent} % of the SMs, by its environment"),
                None => "none: SMs are limited under MPS only".to_owned(),
            }),
        }
    }

    fn promise(&self, record: &Record, spec: &TaskSpec, memory: Option<Bytes>) -> Promise {
        let placement = record.placement.as_ref();
        let share = placement.map_or(Share::Exclusive, |placement| placement.share);
        let instance = placement.and_then(|placement| placement.slots.first()?.instance);
        let instance = instance.map(|instance| instance.memory);
        let whole = || placement.map_or(Bytes::ZERO, |placement| self.largest(placement));
        Promise {
            task: record.id,
            memory,
            processes: 1,
            share,
            instance,
            // A task that has its GPUs to itself takes nothing from another task.
            framework: spec.framework.filter(|_| share != Share::Exclusive && !spec.exclusive),
            device: instance.unwrap_or_else(whole),
        }
    }

    /// The memory of the largest of a task's GPUs.
    pub(super) fn largest(&self, placement: &Placement) -> Bytes {
        let capacities = placement.gpus().filter_map(|gpu| self.capacities.get(gpu.index()));
        capacities.copied().max().unwrap_or_default()
    }

    /// The variables that tell a task's framework what it may hold.
    pub(super) fn framework_cap(
        &self,
        record: &Record,
        spec: &TaskSpec,
        memory: Option<Bytes>,
    ) -> Vec<(&'static str, String)> {
        let Promise { framework, memory, processes, device, .. } =
            self.promise(record, spec, memory);
        let told = framework.zip(memory);
        told.map(|(name, memory)| cap(name, memory, device, processes).variables())
            .unwrap_or_default()
    }

    /// Limits GPU memory by the kernel's controller; says whether all of it reads back.
    fn limit_dmem(&self, record: &Record, group: &TaskGroup, memory: Bytes) -> bool {
        let Ok(groups) = &self.groups else { return false };
        if !groups.has(Controller::Dmem) {
            return false;
        }
        let dmem = Dmem::at(groups.root());
        let gpus = record.placement.iter().flat_map(Placement::gpus);
        let addresses: Vec<&String> =
            gpus.filter_map(|gpu| self.addresses.get(gpu.index())).collect();
        let holds = |address: &&String| {
            dmem.limit(group.name(), address, memory).is_ok_and(|read| read.holds())
        };
        !addresses.is_empty() && addresses.iter().all(holds)
    }

    /// What was declared of an attempt, as far as it came true: a program that could not enter its group is not held by
    /// it.
    pub(super) fn true_enforcement(&self, record: &Record) -> Option<Box<EnforcementView>> {
        let declared = record.enforcement.clone()?;
        let by_group = declared.containment != Containment::Session;
        match self.run_dir(record).started() {
            Ok(Some(started)) if by_group && !started.in_group => Some(Box::new(EnforcementView {
                containment: Containment::Session,
                processes: "session: it could not enter its control group".to_owned(),
                dmem: false,
                gpu_memory: match declared.dmem {
                    true => Enforcement { holds: Vec::new() }.says(),
                    false => declared.gpu_memory,
                },
                host_memory: None,
                cpus: None,
                mps: declared.mps,
                sms: declared.sms,
            })),
            _ => Some(declared),
        }
    }

    /// An attempt is over: every process that is left in its group goes, and so does the group.
    pub(super) fn end_group(&self, record: &Record) {
        if let Some(group) = self.group(record) {
            group.end();
        }
    }

    /// Removes the groups of attempts that are not known to be running, of tasks that the journal knows.
    pub(super) fn sweep_groups(
        &self,
        running: &[(TaskId, u32)],
        is_known: &dyn Fn(TaskId) -> bool,
    ) {
        if let Ok(groups) = &self.groups {
            let needed: Vec<TaskGroup> =
                running.iter().map(|&(task, attempt)| groups.group(task, attempt)).collect();
            groups.sweep(&needed, is_known);
        }
    }
}
