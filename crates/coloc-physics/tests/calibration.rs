//! The model against the published points it is calibrated to: each within 3 %.

use coloc_model::{Bytes, GpuModel, Share, SignatureId};
use coloc_physics::published::{self, COPIES, DLRM, DLRM_WITH_RESNET152, RESNET152_MIXED};
use coloc_physics::{Interference, Part, Profile, Resident, SharedGpu};

const TOLERANCE: f64 = 0.03;

fn assert_close(what: &str, got: f64, published: f64) {
    let error = (got - published).abs() / published;
    assert!(error <= TOLERANCE, "{what}: {got:.3} against {published}, off by {error:.3}");
}

fn rates(gpu: &SharedGpu, share: Share, residents: &[Resident<'_>]) -> Vec<f64> {
    let mut rates = Vec::new();
    gpu.rates(share, residents, &mut rates);
    rates
}

#[test]
fn copies_of_one_workload() {
    let gpu = SharedGpu::default();
    for point in COPIES {
        let profile = published::find(point.subject).expect("a published subject").profile();
        let one = Resident { profile: &profile, signature: SignatureId(0), part: Part::Whole };
        let total: f64 = rates(&gpu, point.share, &vec![one; point.copies]).iter().sum();
        assert_close(&format!("{} x{}", point.subject, point.copies), total, point.throughput);
    }
}

#[test]
fn dlrm_beside_resnet152_in_three_modes() {
    let (resnet, dlrm) = (SignatureId(0), SignatureId(1));
    let gpu = SharedGpu {
        interference: Interference::default(),
        pairs: published::measured_pairs(resnet, dlrm),
    };
    let (resnet_profile, dlrm_profile) = (RESNET152_MIXED.profile(), DLRM.profile());
    for point in DLRM_WITH_RESNET152 {
        let part = match point.share {
            Share::Mig => Part::compute_instance(GpuModel::A100_40GB, 3),
            _ => Part::Whole,
        };
        let pair = [
            Resident { profile: &resnet_profile, signature: resnet, part },
            Resident { profile: &dlrm_profile, signature: dlrm, part },
        ];
        let together = rates(&gpu, point.share, &pair);
        let first_end = RESNET152_MIXED.duration().secs() / 3600.0 / together[0];
        let alone = rates(&gpu, point.share, &pair[1..])[0];
        let second_end =
            first_end + (DLRM.duration().secs() / 3600.0 - first_end * together[1]) / alone;
        assert_close(&format!("ResNet152 under {}", point.share), first_end, point.resnet152_h);
        assert_close(&format!("DLRM under {}", point.share), second_end, point.dlrm_h);
    }
}

#[test]
fn small_nets_share_best_under_mps_then_mig_then_streams() {
    let gpu = SharedGpu::default();
    let model = GpuModel::A100_40GB;
    let table = model.mig().expect("an A100 can be partitioned");
    let slice = coloc_model::mig::Layout::default().fit(table, &table.profiles[0]).expect("fits");
    for subject in [published::RESNET26, published::RESNET50] {
        let profile = subject.profile();
        let total = |share, part| -> f64 {
            let one = Resident { profile: &profile, signature: SignatureId(0), part };
            rates(&gpu, share, &[one; 7]).iter().sum()
        };
        let mps = total(Share::Mps, Part::Whole);
        let mig = total(Share::Mig, Part::of_instance(model, slice));
        let streams = total(Share::Streams, Part::Whole);
        assert!(mps > mig && mig > streams, "{}: {mps} {mig} {streams}", subject.name);
    }
}

#[test]
fn a_gpu_may_be_fully_utilized_and_nearly_idle() {
    // One small kernel after the other: nvidia-smi shows 100 %, the SMs have next to nothing to do.
    let profile = Profile::new(1.0, 0.15, 0.05, 0.1, Bytes::from_mib(2000));
    let seen = SharedGpu::observed(std::iter::once((profile.activity, 1.0)));
    assert_eq!((seen.gpu.get(), seen.sm.get()), (1.0, 0.15));
    // So there is room under MPS for three more of them, and none under streams.
    let one = Resident { profile: &profile, signature: SignatureId(0), part: Part::Whole };
    let gpu = SharedGpu::default();
    let total = |share| -> f64 { rates(&gpu, share, &[one; 4]).iter().sum() };
    assert!(total(Share::Mps) > 3.5, "{}", total(Share::Mps));
    assert!(total(Share::Streams) < 1.1, "{}", total(Share::Streams));
}
