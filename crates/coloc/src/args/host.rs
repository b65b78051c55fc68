//! CPUs and memory of the machine that tasks may ask for.

use clap::Args;
use coloc_core::HostCapacity;
use coloc_model::{Bytes, Fleet};

/// What an emulated server has beside each of its GPUs, as servers with eight A100 do.
const EMULATED_CPUS: u32 = 16;
const EMULATED_MEMORY: Bytes = Bytes::from_mib(128 << 10);

/// What is counted of the machine.
#[derive(Args, Clone, Debug)]
pub(crate) struct HostArgs {
    /// CPUs that tasks may ask for with --cpus-per-task, all together; 0 for not to count them [default: those of the machine; 16 for each emulated GPU]
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Host memory that tasks may ask for with --mem, all together; 0 for not to count it [default: that of the machine; 128G for each emulated GPU]
    #[arg(long, value_name = "SIZE")]
    host_memory: Option<Bytes>,
}

impl HostArgs {
    pub(crate) fn capacity(&self, emulated: Option<&Fleet>) -> HostCapacity {
        let gpus = emulated.map(|fleet| fleet.len() as u32);
        let cpus = self.cpus.or_else(|| match gpus {
            Some(gpus) => gpus.checked_mul(EMULATED_CPUS),
            None => std::thread::available_parallelism().ok().map(|cpus| cpus.get() as u32),
        });
        let memory = self.host_memory.or_else(|| match gpus {
            Some(gpus) => Some(Bytes(EMULATED_MEMORY.0.saturating_mul(u64::from(gpus)))),
            None => memory_of(&std::fs::read_to_string("/proc/meminfo").ok()?),
        });
        HostCapacity {
            cpus: cpus.filter(|&cpus| cpus > 0),
            memory: memory.filter(|&memory| memory > Bytes::ZERO),
        }
    }
}

/// All memory, as `/proc/meminfo` tells it.
fn memory_of(text: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_counted_unless_told_otherwise() {
        let args = |cpus, host_memory| HostArgs { cpus, host_memory };
        let fleet: Fleet = "4xA100-40GB".parse().expect("a fleet");
        let emulated = args(None, None).capacity(Some(&fleet));
        assert_eq!(emulated.cpus, Some(64));
        assert_eq!(emulated.memory, Some(Bytes::from_mib(512 << 10)));
        let none = args(Some(0), Some(Bytes::ZERO)).capacity(None);
        assert_eq!(none, HostCapacity::default());
        let real = args(None, None).capacity(None);
        assert!(real.cpus > Some(0) && real.memory > Some(Bytes::ZERO));
        assert_eq!(memory_of("MemFree: 1 kB\nMemTotal:   2 kB\n"), Some(Bytes(2048)));
        assert_eq!((memory_of(""), memory_of("MemTotal: x kB")), (None, None));
    }
}
