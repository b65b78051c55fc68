//! What an emulated trainer does beside training, in the words of a trace's columns.

use crate::error::{CliError, UsageError};
use clap::Args;
use coloc_model::{Bytes, Millis};
use coloc_physics::{Evaluate, LateGrowth, Load, Phases};

const MOST_SECONDS: f64 = 1e9;
/// As in traces: 16 TiB.
const MOST_MEMORY: Bytes = Bytes::from_mib(16_777_216);

/// Phases of memory. A bare number of memory is MiB; `12G` is understood too.
#[derive(Args, Debug)]
#[command(next_help_heading = "Phases (named like the columns of a trace)")]
pub(super) struct PhaseFlags {
    /// Load for so long before it trains, with idle SMs; part of its run time
    #[arg(long, value_name = "SECONDS")]
    load_s: Option<f64>,
    /// Memory on each GPU while it loads; a context at least
    #[arg(long, value_name = "SIZE", requires = "load_s")]
    load_mib: Option<Bytes>,
    /// Evaluate so often, counted from the end of its warm-up
    #[arg(long, value_name = "SECONDS", requires = "eval_s", requires = "eval_mib")]
    eval_every_s: Option<f64>,
    /// How long an evaluation takes
    #[arg(long, value_name = "SECONDS", requires = "eval_every_s")]
    eval_s: Option<f64>,
    /// Memory on each GPU while it evaluates; given back afterwards
    #[arg(long, value_name = "SIZE", requires = "eval_every_s")]
    eval_mib: Option<Bytes>,
    /// So long after its warm-up it comes to hold more, and keeps it
    #[arg(long, value_name = "SECONDS", requires = "grow_mib")]
    grow_after_s: Option<f64>,
    /// Memory on each GPU from then on
    #[arg(long, value_name = "SIZE", requires = "grow_after_s")]
    grow_mib: Option<Bytes>,
    /// Print PyTorch's out-of-memory error before the end, with figures of another GPU, and end with exit code 0
    #[arg(long)]
    print_oom: bool,
}

impl PhaseFlags {
    /// The phases of a run that takes so many seconds alone.
    pub(super) fn read(&self, seconds: f64) -> Result<Phases, CliError> {
        let load = match span("--load-s", self.load_s)? {
            Some(span) if span.secs() >= seconds => {
                let expected = format!("less than the run's {seconds} seconds (--seconds)");
                return Err(UsageError::value("--load-s", expected, span.secs()).into());
            }
            Some(span) => {
                Some(Load { span, held: memory("--load-mib", self.load_mib)?.unwrap_or_default() })
            }
            None => None,
        };
        let every = span("--eval-every-s", self.eval_every_s)?;
        let evaluate = match (every, span("--eval-s", self.eval_s)?, self.eval_mib) {
            (Some(every), Some(span), _) if every < Millis::from_secs(1) || span >= every => {
                let expected = "1 second at least, and more than --eval-s";
                return Err(UsageError::value("--eval-every-s", expected, every.secs()).into());
            }
            (Some(every), Some(span), held) => {
                let held = memory("--eval-mib", held)?.unwrap_or_default();
                Some(Evaluate { every, span, held })
            }
            _ => None,
        };
        let after = span("--grow-after-s", self.grow_after_s)?;
        let late = after.zip(memory("--grow-mib", self.grow_mib)?);
        let late = late.map(|(after, held)| LateGrowth { after, held });
        Ok(Phases { load, evaluate, late })
    }

    pub(super) fn prints_oom(&self) -> bool {
        self.print_oom
    }
}

fn span(flag: &str, seconds: Option<f64>) -> Result<Option<Millis>, CliError> {
    match seconds {
        Some(seconds) if !(0.0..=MOST_SECONDS).contains(&seconds) => {
            Err(UsageError::value(flag, format!("0 to {MOST_SECONDS} seconds"), seconds).into())
        }
        seconds => Ok(seconds.map(Millis::from_secs_f64)),
    }
}

fn memory(flag: &str, size: Option<Bytes>) -> Result<Option<Bytes>, CliError> {
    match size {
        Some(size) if size > MOST_MEMORY => {
            Err(UsageError::value(flag, format!("{MOST_MEMORY} at most"), size).into())
        }
        size => Ok(size),
    }
}
