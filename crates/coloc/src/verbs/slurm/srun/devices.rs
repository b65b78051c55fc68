//! Which of a task's GPUs a copy sees.

use super::steps::Steps;
use std::fs::File;
use std::time::Duration;

/// How often GPUs that another srun has are looked at again.
const PAUSE: Duration = Duration::from_millis(100);

/// How GPUs are divided among copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Binding {
    /// Each copy sees all.
    All,
    /// Each copy has so many to itself.
    Each(u32),
    /// So many copies share one.
    Shared(u32),
    /// Copy by copy, the number of one.
    Map(Vec<u32>),
    /// Copy by copy, the numbers of some.
    Masks(Vec<u64>),
}

impl Binding {
    /// `single:2`, `per_task:1`, `map_gpu:0,1`, `mask_gpu:0x1,0x2`, `closest` or `none`, as `--gpu-bind` has it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let fail = || {
            format!(
                "{text:?}: expected none, closest, single:1, per_task:1, map_gpu:0,1 or mask_gpu:0x1,0x2"
            )
        };
        let plain = text.trim_start_matches("verbose,").trim_start_matches("v,");
        let (kind, rest) = plain.split_once(':').unwrap_or((plain, ""));
        let count = || rest.parse().ok().filter(|&count: &u32| count > 0).ok_or_else(fail);
        let masks = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
        match kind {
            "none" | "closest" => Ok(Binding::All),
            "single" => Ok(Binding::Shared(count()?)),
            "per_task" => Ok(Binding::Each(count()?)),
            "map_gpu" => {
                let list = rest.split(',').map(str::parse).collect::<Result<_, _>>();
                list.map(Binding::Map).map_err(|_| fail())
            }
            "mask_gpu" => {
                let list = rest.split(',').map(masks).collect::<Result<_, _>>();
                list.map(Binding::Masks).map_err(|_| fail())
            }
            _ => Err(fail()),
        }
    }

    /// The places of the GPUs that a copy sees, of so many.
    fn places(&self, rank: u32, gpus: usize) -> Vec<usize> {
        let rank = rank as usize;
        let within = |place: &usize| *place < gpus;
        match self {
            Binding::All => (0..gpus).collect(),
            Binding::Each(count) => {
                let first = rank * *count as usize;
                (first..first + *count as usize).filter(within).collect()
            }
            Binding::Shared(_) if gpus == 0 => Vec::new(),
            Binding::Shared(copies) => vec![rank / *copies as usize % gpus],
            Binding::Map(list) => {
                let place = list.get(rank % list.len().max(1)).map(|&place| place as usize);
                place.filter(within).into_iter().collect()
            }
            Binding::Masks(list) => {
                let mask = list.get(rank % list.len().max(1)).copied().unwrap_or(0);
                (0..gpus.min(64)).filter(|place| mask >> place & 1 == 1).collect()
            }
        }
    }
}

/// The GPUs of a step.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// As the driver knows them, each with its number on the machine.
    gpus: Vec<(String, String)>,
    /// Held as long as the step runs.
    _taken: Vec<File>,
}

impl Devices {
    /// Those of the task, by its environment.
    pub(super) fn of_task() -> Self {
        let list = |name: &str| std::env::var(name).unwrap_or_default();
        Devices::read(&list("CUDA_VISIBLE_DEVICES"), &list("COLOC_GPUS"))
    }

    fn read(names: &str, numbers: &str) -> Self {
        let split = |list: &str| -> Vec<String> {
            list.split(',').map(str::to_owned).filter(|part| !part.is_empty()).collect()
        };
        let numbers = split(numbers);
        let names = split(names).into_iter().enumerate();
        let number = |at: usize| numbers.get(at).cloned().unwrap_or_else(|| at.to_string());
        let gpus = names.map(|(at, name)| (name, number(at))).collect();
        Devices { gpus, _taken: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.gpus.len()
    }

    /// The first of them, whoever has them.
    pub(super) fn first(mut self, count: u32) -> Self {
        self.gpus.truncate(count as usize);
        self
    }

    /// So many of them that no other srun of the task has; waits until there are.
    pub(super) fn alone(self, count: u32, steps: &Steps) -> Self {
        if !steps.are_known() || count == 0 {
            return self.first(count);
        }
        let mut told = false;
        loop {
            let mut taken = Vec::new();
            for (place, gpu) in self.gpus.iter().enumerate() {
                if taken.len() < count as usize {
                    taken.extend(steps.take(place).map(|file| (gpu.clone(), file)));
                }
            }
            if taken.len() == count as usize {
                let (gpus, taken) = taken.into_iter().unzip();
                return Devices { gpus, _taken: taken };
            }
            drop(taken);
            if !std::mem::replace(&mut told, true) {
                eprintln!("srun: waits for GPUs of the task that another srun has");
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// What a copy is told.
    pub(super) fn variables(&self, binding: &Binding, rank: u32) -> Vec<(&'static str, String)> {
        let places = binding.places(rank, self.gpus.len());
        let chosen: Vec<&(String, String)> =
            places.iter().map(|&place| &self.gpus[place]).collect();
        let join = |of: fn(&(String, String)) -> &String,
                    all: &mut dyn Iterator<Item = &(String, String)>| {
            all.map(of).cloned().collect::<Vec<_>>().join(",")
        };
        let names = join(|gpu| &gpu.0, &mut chosen.iter().copied());
        let step = join(|gpu| &gpu.1, &mut self.gpus.iter());
        vec![
            ("CUDA_VISIBLE_DEVICES", names.clone()),
            ("NVIDIA_VISIBLE_DEVICES", if names.is_empty() { "void".to_owned() } else { names }),
            ("COLOC_GPUS", join(|gpu| &gpu.1, &mut chosen.iter().copied())),
            ("SLURM_STEP_GPUS", step),
            ("SLURM_GPUS_ON_NODE", self.gpus.len().to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_see_their_gpus() {
        let places = |text: &str, rank, gpus| Binding::read(text).unwrap().places(rank, gpus);
        assert_eq!(places("none", 3, 2), [0, 1]);
        assert_eq!(places("per_task:2", 1, 4), [2, 3]);
        assert_eq!(places("per_task:2", 2, 4), [0; 0]);
        assert_eq!((places("single:2", 1, 2), places("single:2", 2, 2)), (vec![0], vec![1]));
        assert_eq!((places("map_gpu:1,0", 0, 2), places("map_gpu:1,0", 3, 2)), (vec![1], vec![0]));
        assert_eq!(places("verbose,mask_gpu:0x1,0x3", 1, 2), [0, 1]);
        assert_eq!(places("mask_gpu:0xff", 0, 2), [0, 1]);
        for wrong in ["", "single", "single:0", "map_gpu:", "map_gpu:x", "mask_gpu:z", "near"] {
            assert!(Binding::read(wrong).is_err(), "{wrong}");
        }
        let devices = Devices::read("GPU-a,GPU-b", "2,5");
        let told = devices.variables(&Binding::Each(1), 1);
        assert_eq!(told[0], ("CUDA_VISIBLE_DEVICES", "GPU-b".to_owned()));
        assert!(told.contains(&("COLOC_GPUS", "5".to_owned())));
        assert!(told.contains(&("SLURM_STEP_GPUS", "2,5".to_owned())));
        assert_eq!(Devices::read("", "").len(), 0);
    }
}
