//! Slurm's flags for a batch script that one machine has little use for: scripts that have them work, and a user who
//! relies on one that does nothing here is told.

use crate::parse::slurm::{self, GpuWish};
use clap::Args;
use coloc_daemon::kinds::is_of_kind;
use coloc_model::KNOWN_MODELS;

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
    #[arg(short = 'N', long, hide = true)]
    nodes: Option<String>,
    #[arg(short = 'n', long, hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    ntasks: Option<u32>,
    #[arg(long, hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    ntasks_per_node: Option<u32>,
    #[arg(short = 'c', long, hide = true)]
    cpus_per_task: Option<String>,
    #[arg(long, hide = true)]
    cpus_per_gpu: Option<String>,
    #[arg(long, hide = true)]
    mem_per_cpu: Option<String>,
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
}

impl SlurmArgs {
    /// GPUs that are asked for in one of Slurm's ways.
    pub(crate) fn gpus(&self) -> Option<u32> {
        let tasks = self.ntasks.or(self.ntasks_per_node).unwrap_or(1);
        let by_task = self.gpus_per_task.as_ref().map(|wish| wish.count.saturating_mul(tasks));
        let plain = self.gres.as_ref().or(self.gpus_per_node.as_ref()).map(|wish| wish.count);
        plain.or(by_task)
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

    /// What a user who counts on a flag should know.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let nodes = self.nodes.as_ref().filter(|nodes| !matches!(nodes.as_str(), "1" | "1-1"));
        let nodes = nodes.map(|nodes| format!("--nodes {nodes}: this is one machine"));
        let ntasks = self.ntasks.or(self.ntasks_per_node).filter(|&tasks| tasks > 1);
        let ntasks = ntasks.map(|n| format!("--ntasks {n}: the command is started once; let torchrun or the like start its workers"));
        let constraint = self.constraint.as_ref().filter(|_| self.kinds_of_constraint().is_none());
        let constraint =
            constraint.map(|c| format!("--constraint {c}: only kinds of GPU can be chosen"));
        let per_cpu = self.mem_per_cpu.as_ref().map(|_| "--mem-per-cpu: use --mem".to_owned());
        let mail = self.mail_type.as_ref().filter(|kind| !kind.eq_ignore_ascii_case("none"));
        let mail = mail.map(|_| "--mail-type: no mail is sent".to_owned());
        let requeue = self
            .no_requeue
            .then(|| "--no-requeue: who is preempted, or loses a GPU, is started again".to_owned());
        [nodes, ntasks, per_cpu, constraint, mail, requeue].into_iter().flatten().collect()
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
        assert!(args(None, Some("a100|V100")).remarks().is_empty());
        for other in ["intel", "a100&nvlink", "a100|intel", ""] {
            assert_eq!(args(None, Some(other)).kinds(&gpus(None)), none, "{other}");
            assert_eq!(args(None, Some(other)).remarks().len(), 1, "{other}");
        }
    }
}
