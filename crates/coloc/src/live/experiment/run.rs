//! The course of an experiment: each command alone, then side by side.

use super::copies::{Listening, Measured, Variables, measure};
use super::gauge::Gauge;
use super::progress::Pattern;
use super::{Alone, Found, Plan, Reading, Together, Trial};
use crate::error::CliError;
use coloc_daemon::record::Uid;
use coloc_daemon::sharing::Sharing;
use coloc_daemon::text::RawText;
use coloc_gpu::device::Uuid;
use coloc_gpu::driver::Guarded;
use coloc_gpu::process::{Attribution, ProcessTable, Users};
use coloc_gpu::snapshot;
use coloc_model::Share;
use std::time::Duration;

/// A driver that takes longer to answer is said to hang.
const DEADLINE: Duration = Duration::from_secs(10);
/// What makes a process a client of MPS.
const MPS: [&str; 4] = [
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
];

/// Plays a plan on the GPU that this process was given; `say` is told how far it is.
pub(crate) fn run(plan: &Plan, mut say: impl FnMut(&str)) -> Result<Found, CliError> {
    let pattern = Pattern::new(plan.progress.as_deref())
        .map_err(|error| CliError::Usage(format!("--progress: {error}")))?;
    let listening = Listening {
        pattern,
        warmup: Duration::from_secs_f64(plan.warmup_s),
        seconds: Duration::from_secs_f64(plan.seconds),
    };
    let (uuid, gpu, emulated) = given_gpu()?;
    let gauge = Gauge::start(uuid.clone());
    let mut lab = Lab { uuid, gauge, listening, sharing: None };
    say("alone");
    let alone = lab.alone(&plan.command)?;
    let with_alone = plan.with.as_ref().map(|with| lab.alone(with)).transpose()?;
    let mut trials = Vec::new();
    for &share in &plan.shares {
        for &copies in &plan.copies {
            say(&format!("{share}, {copies} copies"));
            let outcome = match (&plan.with, copies) {
                (None, 1) if share != Share::Mig => Ok(by_itself(&alone)),
                _ => lab.together(plan, share, copies, &alone, with_alone.as_ref()),
            };
            trials.push(Trial { share, copies, outcome });
        }
    }
    Ok(Found { gpu, emulated, alone, with_alone, trials })
}

/// One copy on its own is the measure of all others.
fn by_itself(alone: &Alone) -> Together {
    Together {
        throughput: 1.0,
        slowdowns: vec![1.0],
        energy_ratio: alone.gauge.energy_j.map(|_| 1.0),
        gauge: alone.gauge,
    }
}

/// The GPU that the daemon gave us, its model, and whether it is emulated.
fn given_gpu() -> Result<(Uuid, String, bool), CliError> {
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").unwrap_or_default();
    let (versions, told) = Guarded::nvml(DEADLINE).ask(snapshot::ask)?;
    let mut attribution = Attribution::new(ProcessTable::default(), Users::of_system());
    let seen = snapshot::compose(versions, told, &mut attribution);
    let first = visible.split(',').next().unwrap_or_default().to_owned();
    let gpu = seen.gpus.iter().find(|gpu| gpu.uuid.as_ref().is_some_and(|u| u.as_str() == first));
    let gpu = gpu.ok_or_else(|| {
        CliError::Refused(format!("no whole GPU was given to the experiment, but {visible:?}"))
    })?;
    let name = gpu.name.clone().unwrap_or_default();
    Ok((Uuid::new(&first), name, seen.emulated))
}

/// Where things are tried out.
struct Lab {
    uuid: Uuid,
    gauge: Gauge,
    listening: Listening,
    /// MPS of our own, where the daemon gave us none.
    sharing: Option<(Sharing, std::path::PathBuf)>,
}

impl Lab {
    fn alone(&self, command: &[RawText]) -> Result<Alone, CliError> {
        let measured = measure(&[command], &without_mps(), &self.listening)
            .map_err(|error| CliError::Refused(format!("alone: {error}")))?;
        Ok(Alone {
            rate: measured.rates[0],
            by_progress: measured.by_progress,
            gauge: self.reading(&measured),
        })
    }

    fn reading(&self, measured: &Measured) -> Reading {
        self.gauge.reading(measured.from, measured.until)
    }

    fn together(
        &mut self,
        plan: &Plan,
        share: Share,
        copies: u32,
        alone: &Alone,
        with_alone: Option<&Alone>,
    ) -> Result<Together, String> {
        let variables = self.variables(share)?;
        let mut commands: Vec<&[RawText]> = vec![&plan.command; copies as usize];
        commands.extend(plan.with.as_deref());
        let measured =
            measure(&commands, &variables, &self.listening).map_err(|error| error.to_string())?;
        if measured.by_progress != alone.by_progress {
            return Err("progress was told alone or together, but not both".to_owned());
        }
        let before = || std::iter::repeat_n(alone, copies as usize).chain(with_alone);
        let speeds: Vec<f64> =
            measured.rates.iter().zip(before()).map(|(rate, alone)| rate / alone.rate).collect();
        let gauge = self.reading(&measured);
        let power =
            |reading: &Reading| Some(reading.energy_j? / reading.seconds).filter(|p| *p > 0.0);
        let one_by_one: Option<f64> = speeds
            .iter()
            .zip(before())
            .map(|(speed, alone)| Some(speed * power(&alone.gauge)?))
            .sum();
        Ok(Together {
            throughput: speeds.iter().sum(),
            slowdowns: speeds.iter().map(|speed| 1.0 / speed).collect(),
            energy_ratio: power(&gauge).zip(one_by_one).map(|(together, apart)| together / apart),
            gauge,
        })
    }

    /// What processes find in their environment so that they share as they are to.
    fn variables(&mut self, share: Share) -> Result<Variables, String> {
        match share {
            Share::Streams | Share::Exclusive => Ok(without_mps()),
            Share::Mps => self.mps(),
            other => Err(format!("not tried: a running experiment cannot set up {other}")),
        }
    }

    /// The daemon may have made us a client of MPS already; else it is set up here.
    fn mps(&mut self) -> Result<Variables, String> {
        if std::env::var_os(MPS[0]).is_some() {
            // Limits are for tasks that said what they need.
            return Ok(MPS[2..].iter().map(|name| ((*name).to_owned(), None)).collect());
        }
        let uid = Uid(coloc_daemon::users::my_id());
        let (sharing, _) = self.sharing.get_or_insert_with(|| {
            let place = std::env::temp_dir().join(format!("coloc-mps-{}", std::process::id()));
            (Sharing::new(place.clone()), place)
        });
        let variables = sharing.mps(uid, std::slice::from_ref(&self.uuid), None);
        let variables = variables.map_err(|error| format!("MPS cannot be had: {error}"))?;
        Ok(variables.into_iter().map(|(name, value)| (name.to_owned(), Some(value))).collect())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some((mut sharing, place)) = self.sharing.take() {
            sharing.tear_down();
            let _ = std::fs::remove_dir_all(place);
        }
    }
}

fn without_mps() -> Variables {
    MPS.iter().map(|name| ((*name).to_owned(), None)).collect()
}
