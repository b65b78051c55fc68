//! GPUMemNet's two classifiers, with their known faults mended and weights of our own.
//!
//! The features, classes and sizes are the published ones. Mended: features are scaled, and taken in
//! logarithms too; attention runs along the layers instead of across the batch, and a fold never sees a
//! net that was trained on another fold.

mod features;
mod net;
mod of_graph;

pub use features::Classes;
pub(crate) use features::{extra_features, layer_sequence, plain_features};
use net::Net;
#[cfg(feature = "train")]
pub(crate) use net::Net as TrainedNet;
#[cfg(feature = "train")]
pub(crate) use net::{Dense, Encoder, EncoderLayer, Ensemble, Norm, SUM_SCALE, position};
pub use net::{NetError, Scaler};

use crate::dataset::{Kind, Prediction, Row};

/// The classifier of one kind of rows.
#[derive(Clone, Debug)]
pub struct GpuMemNet {
    net: Option<Net>,
    classes: Classes,
}

impl GpuMemNet {
    /// The shipped nets, those that are better on held-out rows: the transformer ensemble for MLPs, the MLP
    /// ensemble for CNNs. Transformers have too few measured rows for a classifier.
    pub fn shipped(kind: Kind) -> Self {
        let bytes: Option<&[u8]> = match kind {
            Kind::Mlp => Some(include_bytes!("../../models/gpumemnet_mlp.net")),
            Kind::Cnn => Some(include_bytes!("../../models/gpumemnet_cnn.net")),
            Kind::Transformer => None,
        };
        let read =
            |bytes| Net::from_bytes(bytes).expect("the shipped nets were written by this crate");
        GpuMemNet { net: bytes.map(read), classes: Classes::of(kind) }
    }

    /// A net of one's own.
    #[cfg(feature = "train")]
    pub(crate) fn new(net: TrainedNet, kind: Kind) -> Self {
        GpuMemNet { net: Some(net), classes: Classes::of(kind) }
    }

    /// The class of a row, as an estimate: its upper edge.
    pub fn predict(&self, row: &Row) -> Option<Prediction> {
        let net = self.net.as_ref()?;
        row.graph.as_ref()?;
        let class = net.class(row);
        let edge = self.classes.upper_mib(class);
        Some(Prediction {
            peak_mib: edge,
            class_mib: self.classes.middle_mib(class),
            bound_mib: edge,
            smact: None,
        })
    }
}
