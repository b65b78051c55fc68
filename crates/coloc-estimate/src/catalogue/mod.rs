//! The true graphs of the CARMA and GPUMemNet tasks, branches included, typed in by hand.

mod task;

pub use task::{CatalogueTask, task, task_names};

use crate::graph::{Graph, text};

/// The text of a graph in the catalogue.
pub fn source(model: &str) -> Option<&'static str> {
    Some(match model {
        "vgg16" => include_str!("vgg16.graph"),
        "resnet50" => include_str!("resnet50.graph"),
        "resnet18_cifar" => include_str!("resnet18_cifar.graph"),
        "resnet34_cifar" => include_str!("resnet34_cifar.graph"),
        "mobilenet_v2" => include_str!("mobilenet_v2.graph"),
        "mobilenet_v3_small_cifar" => include_str!("mobilenet_v3_small_cifar.graph"),
        "efficientnet_b0" => include_str!("efficientnet_b0.graph"),
        "efficientnet_b0_cifar" => include_str!("efficientnet_b0_cifar.graph"),
        "inception_v3" => include_str!("inception_v3.graph"),
        "xception" => include_str!("xception.graph"),
        "unet_resnet34" => include_str!("unet_resnet34.graph"),
        "mnist_cnn" => include_str!("mnist_cnn.graph"),
        "dlrm" => include_str!("dlrm.graph"),
        _ => return None,
    })
}

/// A graph of the catalogue.
pub fn graph(model: &str) -> Option<Graph> {
    source(model).map(|text| text::parse(text).expect("the catalogue's graphs are tested"))
}
