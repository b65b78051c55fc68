//! How a task is trained, as far as its memory depends on it: the same flags where it is estimated and where it is
//! submitted.

use clap::Args;
use coloc_estimate::hf::AttentionChoice;
use coloc_estimate::run::{Optimizer, Precision, RunConfig, SummaryPasses};

/// Everything that a model's layers do not say.
#[derive(Args, Clone, Default, PartialEq, Debug)]
pub(crate) struct TrainingArgs {
    /// Samples per iteration on one GPU [default: as the input says, or 8 for a config and 32 for a graph]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) batch: Option<u32>,
    /// Tokens of a sample [default: 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) seq: Option<u32>,
    /// adam, adamw, sgd, sgdm, sgdm-decay, adagrad, rmsprop or lion [default: adam, or adamw for a config]
    #[arg(long, value_name = "NAME")]
    pub(crate) optimizer: Option<Optimizer>,
    /// fp32, fp16, bf16 or mixed [default: fp32]
    #[arg(long, value_name = "NAME")]
    pub(crate) precision: Option<Precision>,
    /// It computes each layer's activations again in the backward pass
    #[arg(long)]
    pub(crate) gradient_checkpointing: bool,
    /// How attention is computed: eager (scores are kept), sdpa, flash_attention_2 and the like [default: as the config says, or its family usually does]
    #[arg(long, value_name = "NAME")]
    pub(crate) attention: Option<AttentionChoice>,
    /// Rank of LoRA adapters; everything else is frozen
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) lora: Option<u32>,
    /// What ZeRO divides among its GPUs: 1 optimizer, 2 gradients too, 3 parameters too
    #[arg(long, value_name = "STAGE", value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) zero: Option<u8>,
    /// Samples of the data set: what is left of them makes a last, partial batch [default: there is none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: Option<u64>,
    /// It prints a summary before it trains, which passes two samples through the model
    #[arg(long)]
    pub(crate) summary_pass: bool,
}

/// What torchsummary and its kin send through a model.
const SUMMARY_PASS: SummaryPasses = SummaryPasses { batch: 2, passes: 1 };

impl TrainingArgs {
    /// What clap calls the flags, for a caller that wants something else with any of them.
    pub(crate) const IDS: [&'static str; 10] = [
        "batch",
        "seq",
        "optimizer",
        "precision",
        "gradient_checkpointing",
        "attention",
        "lora",
        "zero",
        "samples",
        "summary_pass",
    ];

    /// The flags that were given, in their order.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("--batch", self.batch.is_some()),
            ("--seq", self.seq.is_some()),
            ("--optimizer", self.optimizer.is_some()),
            ("--precision", self.precision.is_some()),
            ("--gradient-checkpointing", self.gradient_checkpointing),
            ("--attention", self.attention.is_some()),
            ("--lora", self.lora.is_some()),
            ("--zero", self.zero.is_some()),
            ("--samples", self.samples.is_some()),
            ("--summary-pass", self.summary_pass),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// A run with the batches that a data set of this size makes.
    pub(crate) fn batches(&self, batch: u32) -> RunConfig {
        let summary_passes = self.summary_pass.then_some(SUMMARY_PASS);
        let Some(samples) = self.samples else {
            return RunConfig { summary_passes, ..RunConfig::new(batch) };
        };
        // A data set that is smaller than a batch is one batch.
        let full = samples.min(u64::from(batch)) as u32;
        let last_batch = (samples % u64::from(full)) as u32;
        RunConfig { summary_passes, last_batch, ..RunConfig::new(full) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_flags_are_known() {
        let command = TrainingArgs::augment_args(clap::Command::new("x"));
        let ids: Vec<_> = command.get_arguments().map(|flag| flag.get_id().as_str()).collect();
        assert_eq!(ids, TrainingArgs::IDS);
    }

    #[test]
    fn what_is_left_of_the_samples_is_the_last_batch() {
        let batches = |samples| {
            let run = TrainingArgs { samples, ..TrainingArgs::default() }.batches(32);
            (run.batch, run.last_batch)
        };
        assert_eq!(batches(None), (32, 0));
        assert_eq!(batches(Some(1000)), (32, 8));
        assert_eq!(batches(Some(64)), (32, 0));
        assert_eq!(batches(Some(20)), (20, 0), "smaller than a batch");
        let rehearsed = TrainingArgs { summary_pass: true, ..TrainingArgs::default() };
        assert_eq!(rehearsed.batches(32).summary_passes, Some(SUMMARY_PASS));
        assert_eq!(rehearsed.given().collect::<Vec<_>>(), ["--summary-pass"]);
    }
}
