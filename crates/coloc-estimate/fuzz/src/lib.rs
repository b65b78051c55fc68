//! What every reader promises, whatever it reads: it answers or refuses, the same each time, an error says
//! where, and what was accepted can be estimated.

use coloc_estimate::dataset::{self, DatasetError, Kind, Row};
use coloc_estimate::graph::{Attention, Graph, MOST_NUMBERS, Op, text};
use coloc_estimate::hf::{self, AttentionChoice, Options};
use coloc_estimate::learned::DEFAULT_ENVIRONMENT;
use coloc_estimate::run::RunConfig;
use coloc_estimate::summary::{self, Dialect, SummaryOptions};
use coloc_estimate::{Estimator, ReplayEstimator, horus};
use std::path::Path;

/// Larger graphs are estimated as well, but the time is better spent on more inputs.
const MOST_NODES: usize = 400;
/// Samples per iteration where the input does not say.
const BATCH: u32 = 4;

/// A summary; `false` if the text is not in this dialect, and so was not looked at.
pub fn check_summary(text: &str, dialect: Dialect) -> bool {
    if Dialect::of(text) != Some(dialect) {
        return false;
    }
    let read = || summary::parse(text, &SummaryOptions::default());
    let first = read();
    assert_eq!(first, read(), "the same text reads differently");
    match first {
        Ok(summary) => {
            assert_eq!(summary.dialect, dialect);
            assert_ne!(summary.batch, Some(0), "a batch of nothing");
            let batch = summary.batch.unwrap_or(BATCH);
            check_graph(&summary.graph, &RunConfig::new(batch));
        }
        Err(error) => check_place(text.as_bytes(), error.line, error.column),
    }
    // The published formula has a reader of its own for the same text.
    horus::counts(text, false);
    horus::counts(text, true);
    true
}

/// A graph as text.
pub fn check_graph_text(text: &str) {
    let first = text::parse(text);
    assert_eq!(first, text::parse(text), "the same text reads differently");
    match first {
        Ok(graph) => check_graph(&graph, &RunConfig::new(BATCH)),
        Err(error) => check_place(text.as_bytes(), error.line, error.column),
    }
}

/// A Hugging Face config, trained in two ways.
pub fn check_config(text: &str) {
    let plain = Options { tokens: 64, ..Options::default() };
    let rich = Options {
        checkpointing: true,
        lora_rank: Some(8),
        attention: AttentionChoice::Eager,
        ..plain
    };
    for options in [plain, rich] {
        let first = hf::parse(text, &options);
        assert_eq!(first, hf::parse(text, &options), "the same config reads differently");
        match first {
            Ok(graph) => check_graph(&graph, &RunConfig::new(BATCH)),
            Err(error) => check_place(text.as_bytes(), error.line, error.column),
        }
    }
}

/// Measured rows, as if they were of each kind.
pub fn check_rows(text: &[u8]) {
    for kind in [Kind::Mlp, Kind::Cnn, Kind::Transformer] {
        let read = || dataset::read_from(text, Path::new("rows.csv"), kind);
        match (read(), read()) {
            (Ok(first), Ok(second)) => check_equal_rows(text, &first, &second),
            (Err(first), Err(second)) => {
                assert_eq!(first.to_string(), second.to_string());
                if let DatasetError::Row { line, .. } | DatasetError::Cell { line, .. } = first {
                    check_line(text, line as usize);
                }
            }
            _ => panic!("the same rows are read and refused"),
        }
    }
}

fn check_equal_rows(text: &[u8], first: &[Row], second: &[Row]) {
    assert!(!first.is_empty());
    assert_eq!(first.len(), second.len());
    let mut line = 1;
    for (row, other) in first.iter().zip(second) {
        assert!(row.line > line, "line {} after line {line}", row.line);
        line = row.line;
        check_line(text, line as usize);
        assert_eq!(row.graph, other.graph);
        assert_eq!((&row.run, &row.layers), (&other.run, &other.layers));
        assert!(row.measured_mib.is_finite() && row.measured_mib >= 0.0);
        assert!(row.run.batch > 0 && row.run.last_batch < row.run.batch);
        if let Some(graph) = &row.graph {
            check_graph(graph, &row.run);
        }
    }
}

/// An accepted graph is one, and an estimator has an estimate for it.
fn check_graph(graph: &Graph, run: &RunConfig) {
    let nodes = graph.nodes();
    assert!(!nodes.is_empty());
    for (index, node) in nodes.iter().enumerate() {
        assert!(graph.inputs(node).iter().all(|input| input.index() < index), "{node:?}");
        let sides = [node.shape.channels, node.shape.height, node.shape.width];
        assert!(!sides.contains(&0), "nothing in {node:?}");
        if let Op::Attention(Attention { heads, keys, .. }) = node.op {
            assert!(heads > 0 && keys > 0, "nothing attends in {node:?}");
        }
    }
    // Programs refuse what cannot be added up before they ask an estimator.
    if nodes.len() > MOST_NODES || graph.size(run.batch) > MOST_NUMBERS {
        return;
    }
    let estimator = ReplayEstimator::shipped(DEFAULT_ENVIRONMENT).expect("it ships");
    let estimate = estimator.estimate(graph, run);
    assert!(estimate.peak.0 > 0, "training takes nothing");
    assert!(estimate.bound >= estimate.peak, "{} below {}", estimate.bound, estimate.peak);
}

fn check_place(text: &[u8], line: usize, column: usize) {
    check_line(text, line);
    assert!(column >= 1, "columns are counted from 1");
    assert!(column <= text.len() + 1, "column {column} is behind the end");
}

fn check_line(text: &[u8], line: usize) {
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
    assert!((1..=lines).contains(&line), "line {line} of {lines}");
}
