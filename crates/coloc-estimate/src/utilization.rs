//! How busy a task keeps its GPU: forests for what was measured, a roofline for what was not.

use crate::estimate::Utilization;
use crate::graph::{Graph, Op};
use crate::learned::Forests;
use crate::run::RunConfig;
use coloc_model::Fraction;

/// Multiplications per second and bytes per second of the A100 that the rows were measured on.
const MULTIPLICATIONS: f64 = 78e12;
const BYTES: f64 = 1.555e12;

/// Which of the two sets of forests answers for a graph.
pub(crate) fn forest_index(graph: &Graph) -> usize {
    usize::from(graph.has_convolutions())
}

/// Utilization from the shape features of a graph.
pub(crate) fn predict(
    forests: &Forests,
    graph: &Graph,
    run: &RunConfig,
    features: &[f64],
) -> Utilization {
    let which = forest_index(graph);
    let smact = Fraction::saturating(forests.smact[which].predict(features));
    let smocc = Fraction::saturating(forests.smocc[which].predict(features).min(smact.get()));
    Utilization { smact, smocc, dram: dram(graph, run, smact) }
}

/// While SMs are active they either compute or wait for memory: the share of the latter by a roofline.
fn dram(graph: &Graph, run: &RunConfig, smact: Fraction) -> Fraction {
    let batch = f64::from(run.batch);
    let (mut computing, mut moving) = (0.0, 0.0);
    for node in graph.nodes() {
        let parameters: u64 = node.op.parameters(node.shape).iter().sum();
        let read: u64 =
            graph.inputs(node).iter().map(|id| graph.nodes()[id.index()].shape.elements()).sum();
        let touched = if node.op == Op::View { 0 } else { read + node.shape.elements() };
        // Forward once, backward about twice; the optimizer touches each parameter seven times.
        moving += 4.0 * (3.0 * batch * touched as f64 + 7.0 * parameters as f64) / BYTES;
        computing += 3.0 * batch * node.op.multiplications(node.shape) / MULTIPLICATIONS;
    }
    let share = if moving > 0.0 { moving / (moving + computing) } else { 0.0 };
    Fraction::saturating(smact.get() * share)
}
