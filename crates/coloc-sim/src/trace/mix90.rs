//! The 90-task trace of CARMA's first evaluation: arrivals after Microsoft's Philly cluster, 65 % light,
//! 27 % medium and 8 % heavy tasks. Source: the public CARMA repository (itu-rad/CARMA).

use super::{Trace, TraceTask};
use crate::Names;
use coloc_model::{Millis, SignatureId, Time, UserId};
use coloc_physics::catalogue;

/// Seconds at which each task is submitted.
#[rustfmt::skip]
const SUBMISSIONS: [(u64, &str); 90] = [
    (0, "gpt2_large_2"), (73, "efficientNet3"), (514, "resnet18_cifar100_20e_3"),
    (566, "resnet18_cifar100_50e_1"), (617, "resnet34_cifar100_20e_2"),
    (982, "resnet34_cifar100_20e_1"), (1000, "resnet"), (1166, "resnet18_cifar100_20e_3"),
    (1605, "resnet18_cifar100_20e_1"), (1688, "efficientNet2"), (1711, "resnet18_cifar100_20e_1"),
    (1767, "resnet34_cifar100_20e_1"), (2027, "mobilenet_cifar100_20e_2"),
    (2053, "resnet18_cifar100_50e_3"), (2366, "vgg"), (2383, "xlnet_base_cased_2"), (2684, "vgg2"),
    (2871, "resnet18_cifar100_20e_2"), (2879, "resnet34_cifar100_20e_1"),
    (2935, "resnet18_cifar100_20e_1"), (2966, "resnet34_cifar100_20e_1"),
    (3018, "resnet18_cifar100_50e_2"), (3102, "Inception2"), (3567, "efficientNet_cifar100_50e_2"),
    (3766, "Xception"), (4038, "resnet18_cifar100_50e_3"), (4163, "resnet3"),
    (4167, "resnet18_cifar100_20e_1"), (4453, "mobilenet_cifar100_50e_3"),
    (4736, "mobilenet_cifar100_50e_1"), (4766, "efficientNet_cifar100_50e_2"),
    (4829, "efficientNet_cifar100_20e_2"), (5170, "vgg2"), (5366, "mobilenet_cifar100_20e_2"),
    (5454, "resnet34_cifar100_20e_2"), (5463, "resnet18_cifar100_20e_3"),
    (5467, "xlnet_large_cased_2"), (5469, "resnet34_cifar100_20e_2"),
    (5471, "resnet34_cifar100_20e_3"), (5474, "mobilenet_cifar100_50e_3"),
    (5582, "resnet18_cifar100_50e_3"), (5814, "Inception2"), (5966, "efficientNet_cifar100_20e_2"),
    (6215, "mobilenet_cifar100_50e_1"), (6267, "efficientNet_cifar100_20e_2"), (6567, "Inception2"),
    (6986, "mobilenet_cifar100_20e_3"), (7167, "resnet18_cifar100_20e_2"), (7216, "Inception"),
    (7217, "BERT_base"), (7489, "resnet18_cifar100_50e_3"), (7736, "efficientNet"),
    (7766, "resnet34_cifar100_20e_1"), (7987, "resnet18_cifar100_50e_2"), (8006, "vgg"),
    (8106, "mnist_train"), (8362, "efficientNet_cifar100_50e_1"), (8366, "resnet3"),
    (8955, "xlnet_large_cased_2"), (8966, "resnet34_cifar100_20e_3"),
    (9061, "resnet18_cifar100_50e_1"), (9431, "mobilenet_cifar100_50e_1"),
    (9522, "resnet18_cifar100_20e_2"), (9567, "mobilenet_cifar100_20e_1"),
    (9764, "mobilenet_cifar100_20e_3"), (9911, "Inception2"), (10168, "resnet18_cifar100_20e_3"),
    (10168, "mobilenet_cifar100_20e_1"), (10343, "Xception"), (10551, "resnet18_cifar100_20e_3"),
    (10742, "mobilenet_cifar100_20e_2"), (10766, "Xception"), (10860, "gpt2_large_2"),
    (10986, "mobilenet_cifar100_20e_2"), (11060, "resnet34_cifar100_50e_2"),
    (11065, "mobilenet_cifar100_20e_1"), (11072, "resnet34_cifar100_20e_1"),
    (11366, "resnet18_cifar100_20e_2"), (11760, "BERT_large"), (11883, "Xception"),
    (11966, "resnet18_cifar100_50e_3"), (11996, "resnet2"), (12032, "Xception"),
    (12260, "xlnet_base_cased_2"), (12340, "Xception3"), (12405, "mobilenet_cifar100_50e_3"),
    (12407, "Xception2"), (12411, "efficientNet"), (12471, "vgg"), (12514, "vgg2"),
];

/// The trace, with times and memory from the catalogue.
pub fn mix90() -> Trace {
    let (mut names, mut users) = (Names::default(), Names::default());
    let user = UserId(users.number("user"));
    let tasks = SUBMISSIONS.iter().filter_map(|&(seconds, name)| {
        let workload = catalogue::find(name)?;
        Some(TraceTask {
            submit: Time::START + Millis::from_secs(seconds),
            signature: SignatureId(names.number(name)),
            user,
            gpus: workload.gpus,
            duration: workload.duration(),
            profile: workload.profile(),
            exclusive: false,
            priority: 0,
            phases: coloc_physics::Phases::NONE,
            declared: None,
            recorded: None,
            checkpoint: None,
        })
    });
    let tasks = tasks.collect();
    Trace::new(tasks, names, users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_in_the_catalogue() {
        assert_eq!(mix90().tasks().len(), SUBMISSIONS.len());
    }
}
