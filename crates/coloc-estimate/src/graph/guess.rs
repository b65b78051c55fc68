//! What operations that are not known may well be, for bounds.

use super::{Conv, Facts, Graph, Node, Op, Shape};

/// Wider sides than this are no kernel.
const WIDEST_KERNEL: u64 = 31;

impl Graph {
    /// The same with every unknown operation that has parameters taken for the layer that needs most: a
    /// convolution where there are positions, else a matrix product. `None` where nothing is to be guessed.
    pub fn with_guesses(&self) -> Option<Graph> {
        let guess = |node: &Node| match node.op {
            Op::Unknown { parameters } if parameters > 0 => {
                Some(guessed(parameters, self.input_shape(node), node.shape))
            }
            _ => None,
        };
        if !self.facts.unknown || !self.nodes.iter().any(|node| guess(node).is_some()) {
            return None;
        }
        let mut graph = self.clone();
        for (node, known) in graph.nodes.iter_mut().zip(&self.nodes) {
            if let Some(op) = guess(known) {
                node.op = op;
            }
        }
        graph.facts = Facts::of(&graph);
        Some(graph)
    }
}

fn guessed(parameters: u64, read: Shape, written: Shape) -> Op {
    if written.positions() == 1 {
        let input = parameters / u64::from(written.channels).max(1);
        return Op::Linear { input: input.clamp(1, 1 << 24) as u32, bias: true, tied: false };
    }
    let pairs = (u64::from(read.channels) * u64::from(written.channels)).max(1);
    let (side, groups) = if parameters >= pairs {
        ((parameters / pairs).isqrt().clamp(1, WIDEST_KERNEL), 1)
    } else {
        // Too few numbers to mix all channels: groups, most likely of 3x3 kernels.
        (3, (9 * pairs / parameters).clamp(1, u64::from(read.channels.max(1))))
    };
    let (side, groups) = (side as u32, groups as u32);
    let stride = (read.height / written.height.max(1)).max(1);
    let input = read.channels;
    Op::Conv(Conv { input, kernel: (side, side), stride, groups, bias: true, transposed: false })
}
