//! From a task's flags to what is sent to the daemon: its script, its environment, its estimate.

pub(crate) mod batch_script;
pub(crate) mod environment;
pub(crate) mod presence;

use crate::args::task::{OpenMode, TaskArgs};
use crate::error::{CliError, UsageError};
use crate::estimating::{self, Forecast, Layers, Source};
use crate::invocation::typed_one;
use crate::parse::slurm::Limit;
use batch_script::Prepared;
use coloc_api::request::Submission;
use coloc_api::resource_limits;
use coloc_api::spec::{OnOom, TaskSpec};
use coloc_api::text::RawText;
use coloc_gpu::enforce::{Cap, cap};
use coloc_model::{Bytes, Framework, Millis};
use std::path::PathBuf;

/// Where this program was started.
pub(crate) fn working_directory() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "it was removed; go to another".to_owned(),
            _ => error.to_string(),
        };
        UsageError::file("the working directory", why).into()
    })
}

impl TaskArgs {
    /// What is sent to the daemon.
    #[expect(clippy::too_many_lines, reason = "a line for each field of a specification")]
    pub(crate) fn submission(self) -> Result<Submission, CliError> {
        let args = self;
        let here = working_directory()?;
        let directory = args.chdir.as_ref().map_or(here.clone(), |chdir| here.join(chdir));
        args.slurm.check()?;
        args.tell_what_has_no_effect();
        if args.gpu_mem.is_none() && typed_one(&["--gpu-mem-reclaim"]).is_some() {
            let why = "only declared memory can be lent; give --gpu-mem too";
            return Err(UsageError::flag("--gpu-mem-reclaim", why).into());
        }
        let gpus = args.slurm.gpus().unwrap_or(args.gpus.count);
        let forecast = args.forecast(gpus)?;
        let layout = args.slurm.layout(gpus, &here, &directory);
        let host_memory = args.mem.or_else(|| args.slurm.host_memory(gpus, &layout));
        let after = args.after.unwrap_or_default();
        let mail = args.slurm.mail()?;
        let Prepared { name, command, script } = match args.wrap {
            Some(wrap) => Prepared::shell_command(wrap),
            None if args.command.is_empty() => return Err(UsageError::NoCommand.into()),
            None => batch_script::prepared(args.command, &here, args.in_place)?,
        };
        let spec = TaskSpec {
            name: args.name.unwrap_or(name),
            command: command.into_iter().map(RawText::from).collect(),
            script,
            directory: directory.into_os_string().into(),
            environment: environment::chosen(args.user_env, args.export.as_deref())?.into(),
            gpus,
            gpu_kinds: match args.gpu_kind {
                said if !said.is_empty() => said,
                _ => args.slurm.kinds(&args.gpus),
            },
            pools_if_any: args.pool.is_empty(),
            pools: match args.pool {
                said if !said.is_empty() => said,
                _ => args.slurm.partitions(),
            },
            gpu_memory: args.gpu_mem,
            reclaim: args.gpu_mem_reclaim && args.gpu_mem.is_some(),
            borrow: args.gpu_mem_borrow,
            checkpoint: args.checkpoint,
            force: args.force,
            host_memory: host_memory.filter(|&memory| memory > Bytes::ZERO),
            estimate: forecast.as_ref().map(|forecast| (&forecast.estimate).into()),
            estimator: forecast.as_ref().map(|forecast| forecast.estimate.estimator.to_owned()),
            replayed: forecast.as_ref().and_then(|forecast| forecast.replayed),
            estimate_flags: forecast.map(|forecast| forecast.flags).unwrap_or_default(),
            exclusive: args.exclusive,
            // Zero is none at all; without it the daemon's default counts.
            time_limit: args.time.map(|Limit(limit)| limit.unwrap_or(Millis::ZERO)),
            after: after.tasks,
            after_any: after.any,
            singleton: after.singleton,
            begin_ms: args.begin.map(|begin| begin.0),
            priority: args.priority - args.nice,
            retries: args.retry,
            on_oom: args.on_oom.map_or(OnOom::Policy, OnOom::from),
            warning: args.signal,
            output: args.output.map(|path| path.into_os_string().into()),
            errors: args.error.map(|path| path.into_os_string().into()),
            idle_timeout: args.idle_timeout,
            sm_percent: args.sm_percent,
            framework: args.framework,
            truncate: args.open_mode == Some(OpenMode::Truncate),
            notify: args.notify.into_iter().chain(mail).collect(),
            umask: Some(resource_limits::umask()),
            terminal: None,
            input: false,
            limits: resource_limits::of_this_process().into(),
            layout,
        };
        let key = args.key.or_else(own_key);
        Ok(Submission { key, array: args.array, held: args.hold, ..Submission::of(spec) })
    }

    /// Tells of flags that do little or nothing here.
    fn tell_what_has_no_effect(&self) {
        let memory_is_known =
            self.gpu_mem.is_some() || self.model_summary.is_some() || self.hf_config.is_some();
        let of_framework = self.framework.and_then(|name| remark_on(name, memory_is_known));
        for remark in self.slurm.remark().into_iter().chain(of_framework) {
            eprintln!("coloc: {remark}");
        }
    }

    /// What its layers tell, if they are known. Doubts are told at once.
    fn forecast(&self, gpus: u32) -> Result<Option<Forecast>, CliError> {
        let summary = self.model_summary.as_deref().map(Source::Summary);
        let Some(source) = summary.or(self.hf_config.as_deref().map(Source::Config)) else {
            // What a file says counts for other tasks.
            return match self.env.as_ref().and_then(|_| typed_one(&["--env"])) {
                Some(flag) => {
                    let why = "it is about the estimate: give --model-summary or --hf-config too";
                    Err(UsageError::flag(flag, why).into())
                }
                None => Ok(None),
            };
        };
        let layers = Layers { source, training: &self.training, gpus };
        let forecast = estimating::forecast(&layers, self.env.as_deref())?;
        for flag in &forecast.flags {
            eprintln!("coloc: estimate, {}: {}", flag.kind, flag.detail);
        }
        Ok(Some(forecast))
    }
}

/// What a user who names a framework should know: what it is told depends on the task's need, and some hear nothing.
fn remark_on(framework: Framework, said: bool) -> Option<String> {
    let unsaid = "--framework: there is no limit to tell it without --gpu-mem, a model, or an earlier run of the same command";
    // What the limit is makes no difference to the advice.
    match cap(framework, Bytes::ZERO, Bytes::ZERO, 1) {
        _ if !said => Some(unsaid.to_owned()),
        Cap::Environment { .. } => None,
        Cap::Unable { instead, .. } => Some(format!(
            "--framework: no variable holds it to its memory; its script can call {instead}"
        )),
    }
}

/// A key that no other submission has, so that it can be sent again when its answer was lost.
fn own_key() -> Option<String> {
    let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid").ok()?;
    Some(random.trim().to_owned()).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_a_framework_is_told_what_that_is_worth() {
        assert_eq!(remark_on(Framework::Jax, true), None);
        let told = |framework, said| remark_on(framework, said).unwrap_or_default();
        assert!(told(Framework::Jax, false).contains("without --gpu-mem"));
        assert!(told(Framework::PyTorch, true).contains("set_per_process_memory_fraction"));
        assert!(told(Framework::TensorFlow, true).contains("set_logical_device_configuration"));
    }
}
