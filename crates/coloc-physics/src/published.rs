//! Published measurements of collocation on an A100, and the profiles that reproduce them.
//!
//! Sources: the EuroMLSys'24 collocation analysis and its slides, and the memory study of GPUMemNet.
//! The profiles are calibrated to these points, not measured; `docs/physics.md` says which number comes
//! from where.

use crate::{PairTable, Profile, SlowdownPair};
use coloc_model::{Bytes, Millis, Share, SignatureId};

/// A workload of the published analysis.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it trains.
    pub what: &'static str,
    /// GPU-active, SM, occupancy and DRAM shares when alone.
    shares: [f64; 4],
    memory_mib: u64,
    hours: f64,
}

/// ResNet26 on CIFAR-10 with batch 32; memory and time are assumed.
pub const RESNET26: Subject = Subject {
    name: "resnet26-cifar10",
    what: "ResNet26, CIFAR-10, batch 32",
    shares: [0.33, 0.184, 0.08, 0.10],
    memory_mib: 1900,
    hours: 0.5,
};

/// ResNet50 on 64-pixel ImageNet; memory and time are assumed.
pub const RESNET50: Subject = Subject {
    name: "resnet50-imagenet64",
    what: "ResNet50, ImageNet 64x64",
    shares: [0.52, 0.272, 0.13, 0.20],
    memory_mib: 3500,
    hours: 1.0,
};

/// ResNet152 on ImageNet with batch 32, as run in copies of itself.
pub const RESNET152: Subject = Subject {
    name: "resnet152-imagenet",
    what: "ResNet152, ImageNet, batch 32",
    shares: [0.97, 0.844, 0.40, 0.55],
    memory_mib: 8300,
    hours: 1.2,
};

/// ResNet152 as it ran beside DLRM: partly input-bound, so less demanding than in copies of itself.
pub const RESNET152_MIXED: Subject = Subject {
    name: "resnet152-mixed",
    what: "ResNet152, ImageNet, beside DLRM",
    shares: [0.90, 0.60, 0.29, 0.45],
    memory_mib: 8470,
    hours: 1.05,
};

/// DLRM with a large embedding table: much memory, few kernels.
pub const DLRM: Subject = Subject {
    name: "dlrm-large",
    what: "DLRM, large embedding table",
    shares: [0.30, 0.05, 0.03, 0.12],
    memory_mib: 29_140,
    hours: 5.36,
};

/// Every subject of the analysis.
pub const SUBJECTS: [Subject; 5] = [RESNET26, RESNET50, RESNET152, RESNET152_MIXED, DLRM];

impl Subject {
    /// Its behaviour on a device.
    pub fn profile(&self) -> Profile {
        let [gpu, sm, occupancy, dram] = self.shares;
        Profile::new(gpu, sm, occupancy, dram, Bytes::from_mib(self.memory_mib))
    }

    /// Run time when alone.
    pub fn duration(&self) -> Millis {
        Millis::from_secs_f64(self.hours * 3600.0)
    }
}

/// The subject of that name.
pub fn find(name: &str) -> Option<&'static Subject> {
    SUBJECTS.iter().find(|subject| subject.name == name)
}

/// Throughput of several copies against one at a time.
#[derive(Clone, Copy, Debug)]
pub struct CopiesPoint {
    /// The workload.
    pub subject: &'static str,
    /// How many ran at once.
    pub copies: usize,
    /// How they shared: the source gives the best mode, which was MPS.
    pub share: Share,
    /// Aggregate throughput over that of one.
    pub throughput: f64,
}

/// What was published of copies running together.
pub const COPIES: [CopiesPoint; 4] = [
    CopiesPoint { subject: RESNET26.name, copies: 7, share: Share::Mps, throughput: 5.35 },
    CopiesPoint { subject: RESNET50.name, copies: 7, share: Share::Mps, throughput: 3.5 },
    CopiesPoint { subject: RESNET152.name, copies: 2, share: Share::Mps, throughput: 1.14 },
    CopiesPoint { subject: RESNET152.name, copies: 3, share: Share::Mps, throughput: 1.09 },
];

/// When both tasks of a mixed pair ended, in hours.
#[derive(Clone, Copy, Debug)]
pub struct MixedPoint {
    /// How they shared. MIG here is two compute instances of one GPU instance that share its memory.
    pub share: Share,
    /// End of ResNet152, which takes 1.05 h alone.
    pub resnet152_h: f64,
    /// End of DLRM, which takes 5.36 h alone.
    pub dlrm_h: f64,
}

/// DLRM beside ResNet152, started together.
pub const DLRM_WITH_RESNET152: [MixedPoint; 3] = [
    MixedPoint { share: Share::Streams, resnet152_h: 1.11, dlrm_h: 6.09 },
    MixedPoint { share: Share::Mps, resnet152_h: 1.10, dlrm_h: 5.57 },
    MixedPoint { share: Share::Mig, resnet152_h: 1.40, dlrm_h: 5.60 },
];

impl MixedPoint {
    /// Slow-downs while both ran: (ResNet152, DLRM). The first to finish gives its own; what the other
    /// had left then gives the other's.
    pub fn slowdowns(&self) -> (f64, f64) {
        let (short, long) = (RESNET152_MIXED.hours, DLRM.hours);
        let left_alone = self.dlrm_h - self.resnet152_h;
        (self.resnet152_h / short, self.resnet152_h / (long - left_alone))
    }
}

/// The measured pair as overrides. Activity alone cannot explain it: time-slicing a long-kernel task
/// costs the short-kernel one far more than the reverse.
pub fn measured_pairs(resnet152: SignatureId, dlrm: SignatureId) -> PairTable {
    DLRM_WITH_RESNET152
        .iter()
        .flat_map(|point| {
            let (of_resnet, of_dlrm) = point.slowdowns();
            let share = point.share;
            [
                SlowdownPair { share, task: resnet152, beside: dlrm, slowdown: of_resnet },
                SlowdownPair { share, task: dlrm, beside: resnet152, slowdown: of_dlrm },
            ]
        })
        .collect()
}
