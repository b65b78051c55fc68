//! What the GPU does meanwhile, looked at from a thread.

use super::Reading;
use coloc_gpu::device::Uuid;
use coloc_gpu::driver::Guarded;
use coloc_gpu::monitor::{Monitor, MonitorConfig, Sources};
use coloc_gpu::process::{Attribution, ProcessTable, Users};
use coloc_gpu::sample::dcgm::dmon_feed;
use coloc_model::{Bytes, Fraction, Millis, Time};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is looked at.
const PERIOD: Duration = Duration::from_millis(100);
/// A driver that takes longer to answer is said to hang.
const DEADLINE: Duration = Duration::from_secs(10);

/// One look.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    sm: Option<Fraction>,
    memory: Bytes,
    power_w: Option<f64>,
    energy_j: Option<f64>,
}

/// Watches one GPU until it is dropped.
pub(super) struct Gauge {
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Gauge {
    /// Begins to watch.
    pub(super) fn start(gpu: Uuid) -> Self {
        let (seen, stop) = (Arc::<Mutex<Vec<Seen>>>::default(), Arc::<AtomicBool>::default());
        let (to, until) = (Arc::clone(&seen), Arc::clone(&stop));
        let watch = move || {
            let sources = Sources {
                driver: Guarded::nvml(DEADLINE),
                dmon: Some(dmon_feed(PathBuf::from("dcgmi"), PERIOD)),
                exporter: None,
            };
            let attribution = Attribution::new(ProcessTable::default(), Users::of_system());
            let period = Millis(PERIOD.as_millis() as u64);
            let config = MonitorConfig { period, ..MonitorConfig::default() };
            let mut monitor = Monitor::new(sources, config, attribution);
            let began = Instant::now();
            while !until.load(Ordering::Relaxed) {
                let now = Time(began.elapsed().as_millis() as u64) + Millis(1);
                let look = monitor.sample(now);
                if let Some(sample) = look.samples.iter().find(|sample| sample.gpu == gpu) {
                    let seen = Seen {
                        at: Instant::now(),
                        sm: sample.reading.sm,
                        memory: sample.vitals.memory_used,
                        power_w: sample.vitals.power_w,
                        energy_j: sample.vitals.energy_j,
                    };
                    to.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
                }
                std::thread::sleep(PERIOD);
            }
        };
        // Without a thread nothing is seen, and that is what the reading says.
        let thread = std::thread::Builder::new().name("gauge".to_owned()).spawn(watch).ok();
        Gauge { seen, stop, thread }
    }

    /// What was seen between two moments.
    pub(super) fn reading(&self, from: Instant, until: Instant) -> Reading {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let within: Vec<&Seen> =
            seen.iter().filter(|seen| (from..=until).contains(&seen.at)).collect();
        let mean = |of: fn(&Seen) -> Option<f64>| {
            let all: Vec<f64> = within.iter().filter_map(|seen| of(seen)).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        };
        let most = within.iter().map(|seen| seen.memory).max().unwrap_or(Bytes::ZERO);
        let (first, last) = (within.first(), within.last());
        let energy =
            first.zip(last).and_then(|(first, last)| Some(last.energy_j? - first.energy_j?));
        let watched = first.zip(last).map_or(0.0, |(f, l)| l.at.duration_since(f.at).as_secs_f64());
        Reading {
            smact: mean(|seen| Some(seen.sm?.get())).map(Fraction::saturating),
            memory_mib: most.mib(),
            power_w: mean(|seen| seen.power_w),
            energy_j: energy,
            seconds: watched,
        }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
