//! Slurm's flags for a batch script that one machine has little use for: scripts that have them work, and a user who
//! relies on one that does nothing here is told.

use crate::error::UsageError;
use crate::parse::slurm::{self, GpuWish};
use crate::slurm::options::WithoutEffect;
use clap::Args;
use coloc_api::notify::{Channel, Notify, NotifyEvent};
use coloc_api::spec::TaskLayout;
use coloc_daemon::kinds::is_of_kind;
use coloc_model::{Bytes, KNOWN_MODELS};
use std::path::Path;

/// Flags that only scripts for Slurm have.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Slurm")]
pub(crate) struct SlurmArgs {
    #[arg(long, value_name = "GRES", value_parser = slurm::gres, hide = true, overrides_with_all = ["gpus", "gpus_per_node", "gpus_per_task"])]
    gres: Option<GpuWish>,
    #[arg(long, value_name = "N", value_parser = slurm::gpu_wish, hide = true, overrides_with_all = ["gpus", "gres", "gpus_per_task"])]
    gpus_per_node: Option<GpuWish>,
    #[arg(long, value_name = "N", value_parser = slurm::gpu_wish, hide = true, overrides_with_all = ["gpus", "gres", "gpus_per_node"])]
    gpus_per_task: Option<GpuWish>,
    #[arg(short = 'p', long, hide = true)]
    partition: Option<String>,
    #[arg(short = 'A', long, hide = true)]
    account: Option<String>,
    #[arg(short = 'N', long, hide = true, value_parser = slurm::nodes)]
    nodes: Option<u32>,
    /// Copies that srun starts in it
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    ntasks: Option<u32>,
    #[arg(long, hide = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    ntasks_per_node: Option<u32>,
    #[arg(long, hide = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    ntasks_per_gpu: Option<u32>,
    /// CPUs that it needs, for each copy
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), overrides_with = "cpus_per_gpu")]
    cpus_per_task: Option<u32>,
    #[arg(long, hide = true, value_parser = clap::value_parser!(u32).range(1..=4096), overrides_with = "cpus_per_task")]
    cpus_per_gpu: Option<u32>,
    #[arg(long, hide = true, overrides_with_all = ["mem", "mem_per_gpu"])]
    mem_per_cpu: Option<Bytes>,
    #[arg(long, hide = true, overrides_with_all = ["mem", "mem_per_cpu"])]
    mem_per_gpu: Option<Bytes>,
    #[arg(short = 'q', long, hide = true)]
    qos: Option<String>,
    #[arg(long, hide = true)]
    comment: Option<String>,
    #[arg(short = 'C', long, hide = true)]
    constraint: Option<String>,
    #[arg(long, hide = true)]
    mail_type: Option<String>,
    #[arg(long, hide = true)]
    mail_user: Option<String>,
    #[arg(long, hide = true, overrides_with = "no_requeue")]
    requeue: bool,
    #[arg(long, hide = true)]
    no_requeue: bool,
    #[command(flatten)]
    without_effect: WithoutEffect,
}

impl SlurmArgs {
    /// GPUs that are asked for in one of Slurm's ways.
    pub(crate) fn gpus(&self) -> Option<u32> {
        let tasks = self.ntasks.or(self.ntasks_per_node).unwrap_or(1);
        let by_task = self.gpus_per_task.as_ref().map(|wish| wish.count.saturating_mul(tasks));
        let plain = self.gres.as_ref().or(self.gpus_per_node.as_ref()).map(|wish| wish.count);
        plain.or(by_task)
    }

    /// Mail that is asked for in Slurm's way. Kinds of mail that are of no event here are left out.
    pub(crate) fn mail(&self) -> Result<Option<Notify>, UsageError> {
        let Some(kinds) = &self.mail_type else { return Ok(None) };
        let mut events = Vec::new();
        for kind in kinds.split(',').map(|kind| kind.trim().to_ascii_uppercase()) {
            match kind.as_str() {
                "NONE" => return Ok(None),
                "BEGIN" => events.push(NotifyEvent::Start),
                "END" => events.push(NotifyEvent::End),
                "FAIL" | "INVALID_DEPEND" | "TIME_LIMIT" => events.push(NotifyEvent::Fail),
                "ALL" => {
                    events.extend([NotifyEvent::Start, NotifyEvent::End, NotifyEvent::Fail]);
                }
                "REQUEUE" | "STAGE_OUT" | "TIME_LIMIT_50" | "TIME_LIMIT_80" | "TIME_LIMIT_90"
                | "ARRAY_TASKS" => {}
                _ => {
                    let expected = "NONE, BEGIN, END, FAIL, ALL or another of sbatch's kinds";
                    return Err(UsageError::value("--mail-type", expected, kind));
                }
            }
        }
        events.sort_unstable();
        events.dedup();
        let channel = Channel::Mail(self.mail_user.clone());
        channel.check().map_err(|error| UsageError::flag("--mail-user", error.to_string()))?;
        Ok((!events.is_empty()).then_some(Notify { events, channel, long_wait: None }))
    }

    /// Copies and CPUs of a task with so many GPUs, which is submitted and runs in these directories.
    pub(crate) fn layout(&self, gpus: u32, here: &Path, directory: &Path) -> TaskLayout {
        let by_gpu = self.ntasks_per_gpu.map(|copies| copies.saturating_mul(gpus));
        let ntasks = self.ntasks.or(self.ntasks_per_node).or(by_gpu);
        let copies = ntasks.unwrap_or(1);
        let by_gpu = self.cpus_per_gpu.map(|cpus| cpus.saturating_mul(gpus).div_ceil(copies));
        TaskLayout {
            ntasks,
            cpus_per_task: self.cpus_per_task.or(by_gpu),
            gpus_per_task: self.gpus_per_task.as_ref().map(|wish| wish.count).filter(|&n| n > 0),
            submit_directory: (here != directory).then(|| here.as_os_str().to_owned().into()),
            array: None,
        }
    }

    /// Host memory that is asked for by CPU or by GPU.
    pub(crate) fn host_memory(&self, gpus: u32, layout: &TaskLayout) -> Option<Bytes> {
        let times = |each: Bytes, count: u32| Bytes(each.0.saturating_mul(u64::from(count)));
        let cpus = layout.cpus().or(layout.ntasks).unwrap_or(1);
        let by_cpu = self.mem_per_cpu.map(|each| times(each, cpus));
        by_cpu.or(self.mem_per_gpu.map(|each| times(each, gpus)))
    }

    /// Kinds of GPU that are asked for in one of Slurm's ways.
    pub(crate) fn kinds(&self, gpus: &GpuWish) -> Vec<String> {
        let said = [
            self.gres.as_ref(),
            self.gpus_per_node.as_ref(),
            self.gpus_per_task.as_ref(),
            Some(gpus),
        ];
        let kind = said.into_iter().flatten().find_map(|wish| wish.kind.clone());
        kind.map_or_else(|| self.kinds_of_constraint().unwrap_or_default(), |kind| vec![kind])
    }

    /// `a100|h100`; `None` if these are features of something else.
    fn kinds_of_constraint(&self) -> Option<Vec<String>> {
        let features = self.constraint.as_ref()?.split('|').map(str::trim);
        let is_kind = |feature: &str| KNOWN_MODELS.iter().any(|m| is_of_kind(m.name(), feature));
        features.map(|feature| is_kind(feature).then(|| feature.to_owned())).collect()
    }

    /// Pools that are asked for as partitions.
    pub(crate) fn partitions(&self) -> Vec<String> {
        let named = self.partition.iter().flat_map(|names| names.split(','));
        named.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    }

    /// What would change the result, and cannot be had.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        if let Some((flag, why)) = self.without_effect.refused() {
            return Err(UsageError::flag(flag, why));
        }
        if let (Some(copies), Some(most)) = (self.ntasks, self.ntasks_per_node)
            && copies > most
        {
            let nodes = copies.div_ceil(most);
            let why = format!(
                "{copies} copies, {most} at most on a node (--ntasks-per-node), need {nodes} nodes, and there is one server"
            );
            return Err(UsageError::flag("--ntasks", why));
        }
        Ok(())
    }

    /// What a user who counts on a flag should know, in one sentence.
    pub(crate) fn remark(&self) -> Option<String> {
        let constraint = self.constraint.as_ref().filter(|_| self.kinds_of_constraint().is_none());
        let constraint =
            constraint.map(|c| format!("--constraint {c} (only kinds of GPU can be chosen)"));
        let requeue = "--no-requeue (a task that is preempted, or loses a GPU, is started again)";
        let requeue = self.no_requeue.then(|| requeue.to_owned());
        let told = self.without_effect.idle().chain([constraint, requeue].into_iter().flatten());
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("no effect on one server: {}", told.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_asked_for_in_slurms_ways() {
        let gpus = |kind: Option<&str>| GpuWish { count: 1, kind: kind.map(str::to_owned) };
        let args = |gres: Option<&str>, constraint: Option<&str>| SlurmArgs {
            gres: gres.map(|kind| gpus(Some(kind))),
            constraint: constraint.map(str::to_owned),
            ..SlurmArgs::default()
        };
        let none: [&str; 0] = [];
        assert_eq!(args(None, None).kinds(&gpus(None)), none);
        assert_eq!(args(None, None).kinds(&gpus(Some("h100"))), ["h100"]);
        assert_eq!(args(Some("a100"), Some("v100")).kinds(&gpus(None)), ["a100"]);
        assert_eq!(args(None, Some("a100|V100")).kinds(&gpus(None)), ["a100", "V100"]);
        assert!(args(None, Some("a100|V100")).remark().is_none());
        for other in ["intel", "a100&nvlink", "a100|intel", ""] {
            assert_eq!(args(None, Some(other)).kinds(&gpus(None)), none, "{other}");
            assert!(args(None, Some(other)).remark().is_some(), "{other}");
        }
    }

    #[test]
    fn copies_and_cpus_are_what_slurm_would_give() {
        let layout = |args: &SlurmArgs, gpus| {
            let layout = args.layout(gpus, Path::new("/a"), Path::new("/a"));
            (layout.ntasks, layout.cpus_per_task, args.host_memory(gpus, &layout))
        };
        let gib = |gib: u64| Some(Bytes::from_mib(gib << 10));
        let args = SlurmArgs { ntasks: Some(4), cpus_per_task: Some(8), ..SlurmArgs::default() };
        assert_eq!(layout(&args, 4), (Some(4), Some(8), None));
        let args = SlurmArgs { mem_per_cpu: gib(2), ..args };
        assert_eq!(layout(&args, 4), (Some(4), Some(8), gib(64)));
        let args =
            SlurmArgs { cpus_per_gpu: Some(6), mem_per_gpu: gib(32), ..SlurmArgs::default() };
        assert_eq!(layout(&args, 2), (None, Some(12), gib(64)));
        let args = SlurmArgs { ntasks_per_gpu: Some(2), ..SlurmArgs::default() };
        assert_eq!(layout(&args, 3), (Some(6), None, None));
        let two =
            |ntasks, most| SlurmArgs { ntasks, ntasks_per_node: most, ..SlurmArgs::default() };
        assert!(two(Some(8), Some(8)).check().is_ok() && two(None, Some(4)).check().is_ok());
        let error = two(Some(8), Some(4)).check().expect_err("two nodes").to_string();
        assert!(error.contains("need 2 nodes"), "{error}");
    }
}
