//! The tasks of the CARMA traces: which graph, which batch.

use crate::graph::{FlagKind, Graph};
use crate::hf;
use crate::learned::DEFAULT_ENVIRONMENT;
use crate::run::{Optimizer, RunConfig};

/// A task of the catalogue.
#[derive(Clone, Debug)]
pub struct CatalogueTask {
    /// Its true graph.
    pub graph: Graph,
    /// How it is trained.
    pub run: RunConfig,
    /// The environment whose constant explains its published memory.
    pub environment: &'static str,
}

impl CatalogueTask {
    /// The task as it is estimated in an environment that is named, with doubts about one that does not explain its
    /// published memory.
    #[must_use]
    pub fn within(mut self, environment: &str) -> Self {
        if self.environment != TRACES && environment == TRACES {
            let detail = format!(
                "the published memory of this task is that of environment {}, not of {TRACES}",
                self.environment
            );
            self.graph.flag(FlagKind::SummaryMismatch, detail);
        }
        self
    }
}

/// The environment of the traces.
const TRACES: &str = "carma";

enum Model {
    Listed(&'static str),
    Bert { width: u32, layers: u32 },
    Gpt2 { width: u32, layers: u32 },
    XlNet { width: u32, layers: u32 },
    Unknown,
}

/// Task name, model, samples per iteration on one GPU.
const TASKS: [(&str, Model, u32); 56] = [
    ("BERT_base", Model::Bert { width: 768, layers: 12 }, 32),
    ("BERT_large", Model::Bert { width: 1024, layers: 24 }, 8),
    ("Inception", Model::Listed("inception_v3"), 32),
    ("Inception2", Model::Listed("inception_v3"), 64),
    ("Inception3", Model::Listed("inception_v3"), 128),
    ("UNet", Model::Listed("unet_resnet34"), 8),
    ("Xception", Model::Listed("xception"), 32),
    ("Xception2", Model::Listed("xception"), 64),
    ("Xception3", Model::Listed("xception"), 128),
    ("dlrm", Model::Listed("dlrm"), 32_768),
    ("efficientNet", Model::Listed("efficientnet_b0"), 32),
    ("efficientNet2", Model::Listed("efficientnet_b0"), 64),
    ("efficientNet3", Model::Listed("efficientnet_b0"), 128),
    ("efficientNet_cifar100_20e_1", Model::Listed("efficientnet_b0_cifar"), 32),
    ("efficientNet_cifar100_20e_2", Model::Listed("efficientnet_b0_cifar"), 64),
    ("efficientNet_cifar100_20e_3", Model::Listed("efficientnet_b0_cifar"), 128),
    ("efficientNet_cifar100_50e_1", Model::Listed("efficientnet_b0_cifar"), 32),
    ("efficientNet_cifar100_50e_2", Model::Listed("efficientnet_b0_cifar"), 64),
    ("efficientNet_cifar100_50e_3", Model::Listed("efficientnet_b0_cifar"), 128),
    ("gpt2_large_2", Model::Gpt2 { width: 1280, layers: 36 }, 8),
    ("gpt2_xl", Model::Gpt2 { width: 1600, layers: 48 }, 2),
    ("maskrcnn", Model::Unknown, 8),
    ("mnist_train", Model::Listed("mnist_cnn"), 64),
    ("mobilenet", Model::Listed("mobilenet_v2"), 32),
    ("mobilenet2", Model::Listed("mobilenet_v2"), 64),
    ("mobilenet3", Model::Listed("mobilenet_v2"), 128),
    ("mobilenet_cifar100_20e_1", Model::Listed("mobilenet_v3_small_cifar"), 32),
    ("mobilenet_cifar100_20e_2", Model::Listed("mobilenet_v3_small_cifar"), 64),
    ("mobilenet_cifar100_20e_3", Model::Listed("mobilenet_v3_small_cifar"), 128),
    ("mobilenet_cifar100_50e_1", Model::Listed("mobilenet_v3_small_cifar"), 32),
    ("mobilenet_cifar100_50e_2", Model::Listed("mobilenet_v3_small_cifar"), 64),
    ("mobilenet_cifar100_50e_3", Model::Listed("mobilenet_v3_small_cifar"), 128),
    ("resnet", Model::Listed("resnet50"), 32),
    ("resnet2", Model::Listed("resnet50"), 64),
    ("resnet3", Model::Listed("resnet50"), 128),
    ("resnet18_cifar100_20e_1", Model::Listed("resnet18_cifar"), 32),
    ("resnet18_cifar100_20e_2", Model::Listed("resnet18_cifar"), 64),
    ("resnet18_cifar100_20e_3", Model::Listed("resnet18_cifar"), 128),
    ("resnet18_cifar100_50e_1", Model::Listed("resnet18_cifar"), 32),
    ("resnet18_cifar100_50e_2", Model::Listed("resnet18_cifar"), 64),
    ("resnet18_cifar100_50e_3", Model::Listed("resnet18_cifar"), 128),
    ("resnet34_cifar100_20e_1", Model::Listed("resnet34_cifar"), 32),
    ("resnet34_cifar100_20e_2", Model::Listed("resnet34_cifar"), 64),
    ("resnet34_cifar100_20e_3", Model::Listed("resnet34_cifar"), 128),
    ("resnet34_cifar100_50e_1", Model::Listed("resnet34_cifar"), 32),
    ("resnet34_cifar100_50e_2", Model::Listed("resnet34_cifar"), 64),
    ("resnet34_cifar100_50e_3", Model::Listed("resnet34_cifar"), 128),
    // The script of this name really trains EfficientNet-B0.
    ("resnet50_cifar100_20e_1", Model::Listed("efficientnet_b0_cifar"), 32),
    ("resnet50_cifar100_20e_2", Model::Listed("efficientnet_b0_cifar"), 64),
    ("resnet50_cifar100_20e_3", Model::Listed("efficientnet_b0_cifar"), 128),
    ("vgg", Model::Listed("vgg16"), 32),
    ("vgg2", Model::Listed("vgg16"), 64),
    ("vgg3", Model::Listed("vgg16"), 128),
    ("xlnet_base_cased_2", Model::XlNet { width: 768, layers: 12 }, 8),
    ("xlnet_large_cased_2", Model::XlNet { width: 1024, layers: 24 }, 4),
    ("xlnet_large_cased", Model::XlNet { width: 1024, layers: 24 }, 4),
];

/// The names of all tasks.
pub fn task_names() -> impl Iterator<Item = &'static str> {
    TASKS.iter().map(|(name, _, _)| *name)
}

/// A task by its CARMA name; `None` for names that are not in the catalogue and for tasks whose graph
/// is not written down (Mask R-CNN: its memory follows the images' contents).
pub fn task(name: &str) -> Option<CatalogueTask> {
    let (_, model, batch) = TASKS.iter().find(|(known, _, _)| *known == name)?;
    let (graph, optimizer) = match *model {
        // Inferred: Adam meets the measured CIFAR runs better than momentum, and the ImageNet runs are
        // taken to be PyTorch's example, which uses momentum and weight decay.
        Model::Listed(model) if model.ends_with("cifar") => (super::graph(model)?, Optimizer::Adam),
        Model::Listed(model) => (super::graph(model)?, Optimizer::SgdMomentumDecay),
        Model::Bert { width, layers } => (hf::bert(width, layers), Optimizer::AdamW),
        Model::Gpt2 { width, layers } => (hf::gpt2(width, layers), Optimizer::AdamW),
        Model::XlNet { width, layers } => (hf::xlnet(width, layers), Optimizer::AdamW),
        Model::Unknown => return None,
    };
    let run = RunConfig { optimizer, ..RunConfig::new(*batch) };
    // The traces list 1776 MiB for MNIST, of which a replay explains 116: with the other environment's constant of
    // 1679 that is met, with their own of 527 it is not.
    let environment = if name == "mnist_train" { DEFAULT_ENVIRONMENT } else { TRACES };
    Some(CatalogueTask { graph, run, environment })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimator, ReplayEstimator};

    #[test]
    fn mnist_is_estimated_where_it_was_measured() {
        let mnist = task("mnist_train").unwrap();
        let estimate = |task: &CatalogueTask, environment: &str| {
            ReplayEstimator::shipped(environment).unwrap().estimate(&task.graph, &task.run)
        };
        let error = estimate(&mnist, mnist.environment).peak.mib() / 1776.0 - 1.0;
        assert!(error.abs() < 0.02, "{error}");
        let told = mnist.clone().within("carma");
        assert!(estimate(&told, "carma").flags[0].detail.contains("environment gpumemnet"));
        assert!(mnist.within("gpumemnet").graph.flags.is_empty());
        assert!(task("resnet").unwrap().within("carma").graph.flags.is_empty());
    }
}
