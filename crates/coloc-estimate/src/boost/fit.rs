//! Fits a forest.

use super::forest::{Forest, Grown};
use forust_ml::gradientbooster::GradientBooster;
use forust_ml::objective::ObjectiveType;
use forust_ml::tree::Tree;
use forust_ml::{Matrix, errors::ForustError};

/// The trees could not be grown.
#[derive(Debug, thiserror::Error)]
#[error("cannot fit trees: {0}")]
pub struct FitError(#[from] ForustError);

/// How trees are grown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Trees of each forest.
    pub trees: usize,
    /// Questions on the way to a leaf, at most.
    pub depth: usize,
    /// Share of each tree's answer that is used.
    pub rate: f32,
    /// Rows that a leaf needs.
    pub leaf_rows: f32,
    /// Share of rows that each tree sees.
    pub rows: f32,
    /// Share of features that each tree sees.
    pub columns: f64,
    /// Forests with different seeds, averaged.
    pub forests: u64,
}

/// Fits `targets` from rows of features.
pub fn fit(rows: &[Vec<f64>], targets: &[f64], settings: Settings) -> Result<Forest, FitError> {
    let columns = rows.first().map_or(0, Vec::len);
    let by_column: Vec<f64> =
        (0..columns).flat_map(|column| rows.iter().map(move |row| rounded(row[column]))).collect();
    let data = Matrix::new(&by_column, rows.len(), columns);
    let mut forests = Vec::new();
    for seed in 0..settings.forests {
        let mut booster = GradientBooster::default()
            .set_objective_type(ObjectiveType::SquaredLoss)
            .set_iterations(settings.trees)
            .set_learning_rate(settings.rate)
            .set_max_depth(settings.depth)
            .set_max_leaves(usize::MAX)
            .set_min_leaf_weight(settings.leaf_rows)
            .set_l2(1.0)
            .set_nbins(255)
            .set_subsample(settings.rows)
            .set_colsample_bytree(settings.columns)
            .set_initialize_base_score(true)
            .set_parallel(false)
            .set_seed(seed);
        booster.fit_unweighted(&data, targets, None)?;
        let mut forest = Forest::new(booster.base_score, columns);
        booster.trees.iter().for_each(|tree| forest.push(&grown(tree, 0)));
        forests.push(forest);
    }
    Ok(Forest::mean(&forests))
}

/// Thresholds are stored in 32 bits, so features are compared with that precision from the start.
fn rounded(value: f64) -> f64 {
    f64::from(value as f32)
}

fn grown(tree: &Tree, index: usize) -> Grown {
    let node = &tree.nodes[index];
    if node.is_leaf {
        return Grown::Leaf(node.weight_value);
    }
    Grown::Split {
        feature: node.split_feature,
        threshold: node.split_value as f32,
        below: Box::new(grown(tree, node.left_child)),
        above: Box::new(grown(tree, node.right_child)),
    }
}
