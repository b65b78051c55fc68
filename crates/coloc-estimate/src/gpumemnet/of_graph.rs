//! The classifiers on a net of one's own.

use super::GpuMemNet;
use crate::dataset::{Kind, Layer, Measured, Row, RowOutcome};
use crate::estimate::{Estimate, Promise};
use crate::graph::{Flag, FlagKind, Graph, Op};
use crate::run::RunConfig;
use coloc_model::Bytes;

impl GpuMemNet {
    /// What the shipped net of this graph's kind says; `None` of transformers, for which there is none.
    pub fn estimate(graph: &Graph, run: &RunConfig) -> Option<Estimate> {
        let kind = match (graph.has_attention(), graph.has_convolutions()) {
            (true, _) => Kind::Transformer,
            (false, true) => Kind::Cnn,
            (false, false) => Kind::Mlp,
        };
        let said = GpuMemNet::shipped(kind).predict(&row(graph, run))?;
        let mut flags = graph.flags.clone();
        let detail =
            "the classifier learned from generated nets alone; real ones were not compared"
                .to_owned();
        flags.push(Flag { kind: FlagKind::Unverified, detail });
        Some(Estimate {
            peak: Bytes::from_mib_f64(said.peak_mib),
            bound: Bytes::from_mib_f64(said.bound_mib),
            promise: Promise::Nothing,
            class_mib: Some(said.class_mib),
            utilization: None,
            estimator: "gpumemnet",
            flags,
            breakdown: None,
        })
    }
}

/// The graph as the generators would have written it down.
fn row(graph: &Graph, run: &RunConfig) -> Row {
    let mut activation = "Identity".to_owned();
    let mut layers = Vec::new();
    for node in graph.nodes() {
        let kind = match node.op {
            Op::Input | Op::Tokens | Op::View => continue,
            Op::Linear { .. } => "linear".to_owned(),
            Op::Conv(_) => "conv2d".to_owned(),
            Op::BatchNorm | Op::FrozenBatchNorm | Op::LayerNorm { .. } => "batchnorm2d".to_owned(),
            Op::Dropout { .. } => "dropout".to_owned(),
            Op::Activate { function, .. } => format!("{function:?}"),
            _ => "other".to_owned(),
        };
        if matches!(node.op, Op::Activate { .. }) && activation == "Identity" {
            activation.clone_from(&kind);
        }
        let parameters = node.op.parameters(node.shape).iter().sum();
        layers.push(Layer { kind, activations: node.shape.elements(), parameters });
    }
    let sum = |number: fn(&Layer) -> u64| layers.iter().map(|layer| number(layer) as f64).sum();
    Row {
        line: 0,
        group: 0,
        graph: Some(graph.clone()),
        run: run.clone(),
        measured_mib: 0.0,
        measured: Measured::default(),
        outcome: RowOutcome::Skipped,
        totals: (sum(|layer| layer.activations), sum(|layer| layer.parameters)),
        layers,
        activation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text;

    #[test]
    fn a_graph_is_described_as_its_row_would_be() {
        let graph = text::parse("input 100\nlinear 50\nrelu\nlinear 10\n").unwrap();
        let row = row(&graph, &RunConfig::new(32));
        assert_eq!(row.totals, (110.0, 5050.0 + 510.0));
        assert_eq!((row.activation.as_str(), row.layers.len()), ("ReLU", 3));
        let said = GpuMemNet::estimate(&graph, &RunConfig::new(32)).unwrap();
        assert_eq!(said.peak.mib(), 2000.0, "the smallest class");
    }

    #[test]
    fn transformers_have_no_classifier() {
        let graph = text::parse("tokens 16\nembedding 100 32\nlinear 96\nattention 4\n").unwrap();
        assert!(GpuMemNet::estimate(&graph, &RunConfig::new(8)).is_none());
    }
}
