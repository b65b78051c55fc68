//! The course of an experiment: each command alone, then side by side.

use super::copies::{Listening, Measured, Start, Variables, measure};
use super::gauge::Gauge;
use super::progress::Pattern;
use super::{Alone, Found, Plan, Reading, Together, Trial, partition};
use crate::error::{CliError, UsageError};
use coloc_api::text::RawText;
use coloc_daemon::executor::local::sharing::Sharing;
use coloc_daemon::record::Uid;
use coloc_gpu::device::Uuid;
use coloc_gpu::driver::Guarded;
use coloc_gpu::process::{Attribution, ProcessTable, Users};
use coloc_gpu::snapshot;
use coloc_model::{GpuModel, Share};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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

/// Plays a plan on the GPU that this process was given; `say` is told how far it is, `stop` ends it.
pub(crate) fn run(
    plan: &Plan,
    stop: Arc<AtomicBool>,
    mut say: impl FnMut(&str),
) -> Result<Found, CliError> {
    let pattern = Pattern::new(plan.progress.as_deref())
        .map_err(|error| UsageError::flag("--progress", error.to_string()))?;
    let listening = Listening {
        pattern,
        warmup: Duration::from_secs_f64(plan.warmup_s),
        seconds: Duration::from_secs_f64(plan.seconds),
        stop,
    };
    let mut lab = Lab::open(listening)?;
    say("alone");
    let alone = lab.alone(&plan.command)?;
    let with_alone = plan.with.as_ref().map(|with| lab.alone(with)).transpose()?;
    let mut trials = Vec::new();
    // A server of MPS stays on the GPU for a while, and keeps it from being partitioned: MIG goes first.
    let mut shares = plan.shares.clone();
    shares.sort_by_key(|share| *share == Share::Mps);
    for share in shares {
        for &copies in &plan.copies {
            say(&format!("{share}, {copies} copies"));
            let (layout, outcome) = match (&plan.with, copies) {
                (None, 1) if share != Share::Mig => (String::new(), Ok(by_itself(&alone))),
                _ => lab.together(plan, share, copies, &alone, with_alone.as_ref()),
            };
            trials.push(Trial { share, copies, layout, outcome });
        }
        lab.make_whole();
    }
    let asked = |trial: &Trial| plan.shares.iter().position(|share| *share == trial.share);
    trials.sort_by_key(asked);
    Ok(Found { gpu: lab.name.clone(), emulated: lab.emulated, alone, with_alone, trials })
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

/// Where things are tried out: the GPU that the daemon gave us.
struct Lab {
    uuid: Uuid,
    name: String,
    model: Option<GpuModel>,
    emulated: bool,
    gauge: Gauge,
    listening: Listening,
    /// MPS and MIG of our own, and where that is written down.
    sharing: Option<(Sharing, PathBuf)>,
}

impl Lab {
    fn open(listening: Listening) -> Result<Self, CliError> {
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").unwrap_or_default();
        let (versions, told) = Guarded::nvml(DEADLINE).ask(snapshot::ask)?;
        let mut attribution = Attribution::new(ProcessTable::default(), Users::of_system());
        let seen = snapshot::compose(versions, told, &mut attribution);
        let uuid = Uuid::new(visible.split(',').next().unwrap_or_default());
        let gpu = seen.gpus.iter().find(|gpu| gpu.uuid.as_ref() == Some(&uuid));
        let gpu = gpu.ok_or_else(|| {
            CliError::Refused(format!("no whole GPU was given to the experiment, but {visible:?}"))
        })?;
        Ok(Lab {
            name: gpu.name.clone().unwrap_or_default(),
            model: gpu.model.and_then(|model| model.parse().ok()),
            emulated: seen.emulated,
            gauge: Gauge::start(uuid.clone()),
            uuid,
            listening,
            sharing: None,
        })
    }

    fn alone(&self, command: &[RawText]) -> Result<Alone, CliError> {
        let measured = measure(&[(command, without_mps())], &self.listening)
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

    /// Runs copies side by side; says how the GPU was divided and what came of it.
    fn together(
        &mut self,
        plan: &Plan,
        share: Share,
        copies: u32,
        alone: &Alone,
        with_alone: Option<&Alone>,
    ) -> (String, Result<Together, String>) {
        let mut commands: Vec<&[RawText]> = vec![&plan.command; copies as usize];
        commands.extend(plan.with.as_deref());
        let before = std::iter::repeat_n(alone, copies as usize).chain(with_alone);
        let before: Vec<&Alone> = before.collect();
        match self.variables(share, commands.len()) {
            Ok((layout, variables)) => {
                let starts: Vec<Start<'_>> = commands.into_iter().zip(variables).collect();
                (layout, self.compare(&starts, &before))
            }
            Err(why) => (String::new(), Err(why)),
        }
    }

    fn compare(&self, starts: &[Start<'_>], before: &[&Alone]) -> Result<Together, String> {
        let measured = measure(starts, &self.listening).map_err(|error| error.to_string())?;
        if before.iter().any(|alone| alone.by_progress != measured.by_progress) {
            return Err("progress was told alone or together, but not both".to_owned());
        }
        let rates = measured.rates.iter().zip(before);
        let speeds: Vec<f64> = rates.map(|(rate, alone)| rate / alone.rate).collect();
        let gauge = self.reading(&measured);
        let power =
            |reading: &Reading| Some(reading.energy_j? / reading.seconds).filter(|p| *p > 0.0);
        let one_by_one = speeds.iter().zip(before);
        let one_by_one: Option<f64> =
            one_by_one.map(|(speed, alone)| Some(speed * power(&alone.gauge)?)).sum();
        Ok(Together {
            throughput: speeds.iter().sum(),
            slowdowns: speeds.iter().map(|speed| 1.0 / speed).collect(),
            energy_ratio: power(&gauge).zip(one_by_one).map(|(together, apart)| together / apart),
            gauge,
        })
    }

    /// What processes find in their environment so that they share as they are to, and the partition in words.
    fn variables(
        &mut self,
        share: Share,
        copies: usize,
    ) -> Result<(String, Vec<Variables>), String> {
        match share {
            Share::Streams | Share::Exclusive => Ok((String::new(), vec![without_mps(); copies])),
            Share::Mps => Ok((String::new(), vec![self.mps()?; copies])),
            Share::Mig => self.mig(copies),
        }
    }

    /// The daemon may have made us a client of MPS already; else it is set up here.
    fn mps(&mut self) -> Result<Variables, String> {
        if std::env::var_os(MPS[0]).is_some() {
            // Limits are for tasks that said what they need.
            return Ok(MPS[2..].iter().map(|name| ((*name).to_owned(), None)).collect());
        }
        let (uid, uuid) = (Uid(rustix::process::getuid().as_raw()), self.uuid.clone());
        let client = self.sharing()?.mps.admit_unlimited(uid, &[uuid]);
        let client = client.map_err(|error| format!("MPS cannot be had: {error}"))?;
        Ok(client
            .variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Some(value)))
            .collect())
    }

    fn mig(&mut self, copies: usize) -> Result<(String, Vec<Variables>), String> {
        let plan = self.model.and_then(|model| partition::equal(model, copies));
        let (instances, profile) = plan.ok_or("the GPU has no instances for so many")?;
        let uuid = self.uuid.clone();
        // What the trial before left is in the way.
        self.make_whole();
        let mut given = partition::give(&mut self.sharing()?.partitions, &uuid, &instances)?;
        given.iter_mut().for_each(|variables| variables.extend(without_mps()));
        Ok((format!("{copies} x {profile}"), given))
    }

    fn sharing(&mut self) -> Result<&mut Sharing, String> {
        if self.sharing.is_none() {
            let place = std::env::temp_dir().join(format!("coloc-lab-{}", std::process::id()));
            std::fs::create_dir_all(&place)
                .map_err(|error| format!("{}: {error}", place.display()))?;
            self.sharing = Some((Sharing::new(place.clone(), Guarded::nvml(DEADLINE)), place));
        }
        let (sharing, _) = self.sharing.as_mut().ok_or("nothing was set up")?;
        Ok(sharing)
    }

    /// Takes our instances off the GPU. One that cannot go now goes in the end.
    fn make_whole(&mut self) {
        if let Some((sharing, _)) = &mut self.sharing {
            let _ = sharing.partitions.make_whole(&self.uuid);
        }
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
