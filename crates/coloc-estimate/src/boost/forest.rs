//! A forest in a compact binary form: nodes in preorder, seven bytes each.

const LEAF: u8 = u8::MAX;
const NODE_BYTES: usize = 7;
const MAGIC: [u8; 4] = *b"CFR1";

/// The bytes are not a forest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a forest of this version: {0}; retrain with `coloc estimate train`")]
pub struct ForestError(&'static str);

#[derive(Clone, Copy, PartialEq, Debug)]
struct TreeNode {
    /// Which feature is compared; `LEAF` for a leaf.
    feature: u8,
    /// The threshold, or a leaf's value.
    value: f32,
    /// How far ahead the node for values at or above the threshold stands.
    skip: u16,
}

/// A sum of trees.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Forest {
    base: f64,
    features: usize,
    nodes: Vec<TreeNode>,
    roots: Vec<u32>,
}

/// A tree that is being built: `None` on the left of a pair of children marks a leaf.
#[cfg(feature = "train")]
pub(super) enum Grown {
    Leaf(f32),
    Split { feature: usize, threshold: f32, below: Box<Grown>, above: Box<Grown> },
}

impl Forest {
    /// The sum of the base and of one leaf of each tree.
    pub fn predict(&self, features: &[f64]) -> f64 {
        debug_assert_eq!(features.len(), self.features);
        let mut sum = self.base;
        for &root in &self.roots {
            let mut index = root as usize;
            loop {
                let node = self.nodes[index];
                if node.feature == LEAF {
                    sum += f64::from(node.value);
                    break;
                }
                let below = features[usize::from(node.feature)] < f64::from(node.value);
                index += if below { 1 } else { usize::from(node.skip) };
            }
        }
        sum
    }

    /// Reads what [`Forest::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ForestError> {
        let short = ForestError("it ends early");
        let (head, body) = bytes.split_first_chunk::<20>().ok_or(short)?;
        if head[..4] != MAGIC {
            return Err(ForestError("its first bytes are others"));
        }
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let base = f64::from_bits(u64::from(word(4)) | u64::from(word(8)) << 32);
        let (features, trees) = (word(12) as usize, word(16) as usize);
        let (roots, nodes) = body.split_at_checked(trees.saturating_mul(4)).ok_or(short)?;
        let (roots, _) = roots.as_chunks::<4>();
        let (nodes, rest) = nodes.as_chunks::<NODE_BYTES>();
        if !rest.is_empty() {
            return Err(short);
        }
        let nodes = nodes.iter().map(TreeNode::from_bytes).collect();
        let roots = roots.iter().map(|root| u32::from_le_bytes(*root)).collect();
        Forest { base, features, nodes, roots }.checked()
    }

    /// The compact form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.base.to_bits().to_le_bytes());
        bytes.extend((self.features as u32).to_le_bytes());
        bytes.extend((self.roots.len() as u32).to_le_bytes());
        self.roots.iter().for_each(|root| bytes.extend(root.to_le_bytes()));
        for node in &self.nodes {
            bytes.push(node.feature);
            bytes.extend(node.value.to_le_bytes());
            bytes.extend(node.skip.to_le_bytes());
        }
        bytes
    }

    /// Every walk must end inside the nodes: children stand ahead, leaves exist.
    fn checked(self) -> Result<Self, ForestError> {
        let count = self.nodes.len();
        let inside = |index: usize, node: &TreeNode| {
            node.feature == LEAF
                || (usize::from(node.feature) < self.features
                    && node.skip > 0
                    && index + usize::from(node.skip) < count)
        };
        let rooted = self.roots.iter().all(|root| (*root as usize) < count);
        let whole = self.nodes.iter().enumerate().all(|(index, node)| inside(index, node));
        let ends = self.nodes.last().is_none_or(|node| node.feature == LEAF);
        if rooted && whole && ends { Ok(self) } else { Err(ForestError("a branch leads nowhere")) }
    }
}

impl TreeNode {
    fn from_bytes(bytes: &[u8; NODE_BYTES]) -> Self {
        let [feature, a, b, c, d, e, f] = *bytes;
        TreeNode {
            feature,
            value: f32::from_le_bytes([a, b, c, d]),
            skip: u16::from_le_bytes([e, f]),
        }
    }
}

#[cfg(feature = "train")]
impl Forest {
    pub(super) fn new(base: f64, features: usize) -> Self {
        Forest { base, features, ..Forest::default() }
    }

    pub(super) fn push(&mut self, tree: &Grown) {
        self.roots.push(self.nodes.len() as u32);
        self.flatten(tree);
    }

    /// The mean of several forests.
    pub(super) fn mean(forests: &[Forest]) -> Forest {
        let share = 1.0 / forests.len() as f64;
        let mut mean = Forest::new(
            forests.iter().map(|forest| forest.base).sum::<f64>() * share,
            forests[0].features,
        );
        for forest in forests {
            let offset = mean.nodes.len() as u32;
            mean.roots.extend(forest.roots.iter().map(|root| root + offset));
            mean.nodes.extend(forest.nodes.iter().map(|node| match node.feature {
                LEAF => TreeNode { value: (f64::from(node.value) * share) as f32, ..*node },
                _ => *node,
            }));
        }
        mean
    }

    fn flatten(&mut self, tree: &Grown) {
        let place = self.nodes.len();
        match tree {
            Grown::Leaf(value) => {
                self.nodes.push(TreeNode { feature: LEAF, value: *value, skip: 0 });
            }
            Grown::Split { feature, threshold, below, above } => {
                let feature = u8::try_from(*feature).expect("fewer than 255 features");
                self.nodes.push(TreeNode { feature, value: *threshold, skip: 0 });
                self.flatten(below);
                let skip = self.nodes.len() - place;
                self.nodes[place].skip = u16::try_from(skip).expect("trees of a few hundred nodes");
                self.flatten(above);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x0 < 2 gives 1, else x1 < 5 gives 2, else 3; on top of 0.5.
    fn small() -> Forest {
        let node = |feature, value, skip| TreeNode { feature, value, skip };
        Forest {
            base: 0.5,
            features: 2,
            nodes: vec![
                node(0, 2.0, 2),
                node(LEAF, 1.0, 0),
                node(1, 5.0, 2),
                node(LEAF, 2.0, 0),
                node(LEAF, 3.0, 0),
            ],
            roots: vec![0],
        }
    }

    #[test]
    fn a_value_takes_its_branch() {
        let cases = [([1.0, 9.0], 1.5), ([2.0, 4.9], 2.5), ([7.0, 5.0], 3.5)];
        for (features, expected) in cases {
            assert_eq!(small().predict(&features), expected);
        }
    }

    #[test]
    fn bytes_give_the_forest_back() {
        assert_eq!(Forest::from_bytes(&small().to_bytes()), Ok(small()));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = small().to_bytes();
        assert!(Forest::from_bytes(&[]).is_err());
        assert!(Forest::from_bytes(&bytes[..bytes.len() - 3]).is_err());
        let mut far = bytes.clone();
        far[20 + 4 + 5] = 200;
        assert_eq!(Forest::from_bytes(&far), Err(ForestError("a branch leads nowhere")));
    }
}
