//! Trees with more or fewer columns.

use crate::graph::{FlagKind, Graph, Op, Shape};
use crate::summary::{Summary, SummaryError, SummaryOptions, parse};

fn read(text: &str) -> Result<Graph, SummaryError> {
    parse(text, &SummaryOptions::default()).map(|Summary { graph, .. }| graph)
}

fn flagged(graph: &Graph, kind: FlagKind) -> bool {
    graph.flags.iter().any(|flag| flag.kind == kind)
}

/// Name, input, output, parameters, kernel.
const NET: [[&str; 5]; 10] = [
    ["Net", "[8, 3, 64, 64]", "[8, 10]", "--", "--"],
    ["├─Conv2d: 1-1", "[8, 3, 64, 64]", "[8, 64, 32, 32]", "9,408", "[7, 7]"],
    ["├─BatchNorm2d: 1-2", "[8, 64, 32, 32]", "[8, 64, 32, 32]", "(128)", "--"],
    ["├─ReLU: 1-3", "[8, 64, 32, 32]", "[8, 64, 32, 32]", "--", "--"],
    ["├─Sequential: 1-4", "[8, 64, 32, 32]", "[8, 128, 32, 32]", "--", "--"],
    ["│    └─Conv2d: 2-1", "[8, 64, 32, 32]", "[8, 128, 32, 32]", "8,192", "[1, 1]"],
    ["│    └─Conv2d: 2-2", "[8, 128, 32, 32]", "[8, 128, 32, 32]", "1,280", "[3, 3]"],
    ["├─Conv2d: 1-5", "[8, 128, 32, 32]", "[8, 128, 32, 32]", "147,584", "[3, 3]"],
    ["├─AdaptiveAvgPool2d: 1-6", "[8, 128, 32, 32]", "[8, 128, 1, 1]", "--", "--"],
    ["├─Linear: 1-7", "[8, 128]", "[8, 10]", "1,290", "--"],
];

const HEADS: [&str; 5] =
    ["Layer (type:depth-idx)", "Input Shape", "Output Shape", "Param #", "Kernel Shape"];

fn print(rows: &[[&str; 5]], columns: &[usize], total: u64) -> String {
    let line = |row: &[&str; 5]| {
        columns.iter().map(|&column| format!("{:<28}", row[column])).collect::<String>() + "\n"
    };
    let lines: String = rows.iter().map(line).collect();
    format!(
        "====\n{}====\n{lines}====\nTotal params: {total}\nInput size (MB): 0.39\n",
        line(&HEADS)
    )
}

#[test]
fn without_kernels_the_parameters_tell() {
    let full = read(&print(&NET, &[0, 1, 2, 3, 4], 167_882)).unwrap();
    let blind = read(&print(&NET, &[0, 1, 2, 3], 167_882)).unwrap();
    assert_eq!(full.parameters(), 167_882);
    assert_eq!(full, blind);
    assert!(full.flags.is_empty(), "{:?}", full.flags);
}

#[test]
fn the_usual_columns_are_read_with_a_flag() {
    let full = read(&print(&NET, &[0, 1, 2, 3, 4], 167_882)).unwrap();
    let usual = read(&print(&NET, &[0, 2, 3], 167_882)).unwrap();
    assert_eq!(usual.parameters(), 167_882);
    assert_eq!(usual.nodes()[0].shape, Shape::image(3, 64, 64));
    let convolutions = |graph: &Graph| {
        let ops = graph.nodes().iter().map(|node| node.op.clone());
        ops.filter(|op| matches!(op, Op::Conv(_))).collect::<Vec<_>>()
    };
    assert_eq!(convolutions(&usual), convolutions(&full));
    assert!(flagged(&usual, FlagKind::Assumption) && !flagged(&usual, FlagKind::SummaryMismatch));
}

#[test]
fn residual_blocks_of_the_usual_columns_add_up() {
    let rows = [
        ["Net", "", "[2, 16, 8, 8]", "--", ""],
        ["├─Conv2d: 1-1", "", "[2, 16, 8, 8]", "432", ""],
        ["├─BasicBlock: 1-2", "", "[2, 16, 8, 8]", "--", ""],
        ["│    └─Conv2d: 2-1", "", "[2, 16, 8, 8]", "2,304", ""],
        ["│    └─ReLU: 2-2", "", "[2, 16, 8, 8]", "--", ""],
        ["│    └─Conv2d: 2-3", "", "[2, 16, 8, 8]", "2,304", ""],
        ["│    └─ReLU: 2-4", "", "[2, 16, 8, 8]", "--", ""],
    ];
    let graph = read(&print(&rows, &[0, 2, 3], 5040)).unwrap();
    let sums = graph.nodes().iter().filter(|node| matches!(node.op, Op::Add { .. })).count();
    assert_eq!((sums, graph.parameters()), (1, 5040));
}

#[test]
fn groups_and_totals_are_checked() {
    let mut rows = NET;
    rows[7][3] = "4,736";
    let grouped = read(&print(&rows, &[0, 1, 2, 3, 4], 25_034)).unwrap();
    let groups = grouped.nodes().iter().filter_map(|node| match node.op {
        Op::Conv(conv) => Some(conv.groups),
        _ => None,
    });
    assert_eq!(groups.collect::<Vec<_>>(), [1, 1, 128, 32]);
    assert!(!flagged(&grouped, FlagKind::SummaryMismatch), "{:?}", grouped.flags);
    for columns in [&[0, 1, 2, 3, 4][..], &[0, 1, 2, 3], &[0, 2, 3]] {
        let wrong = read(&print(&NET, columns, 200_000)).unwrap();
        assert!(flagged(&wrong, FlagKind::SummaryMismatch), "{columns:?}");
    }
}

#[test]
fn a_header_that_lacks_too_much_says_what_to_print() {
    let error = read(&print(&NET, &[0, 1, 3], 1)).unwrap_err();
    assert_eq!(error.line, 2);
    assert!(error.problem.contains("col_names"), "{error}");
}

#[test]
fn sequences_and_volumes_keep_their_size() {
    let rows = [
        ["Net", "[4, 50, 32]", "[4, 50, 64]", "--", "--"],
        ["├─Linear: 1-1", "[4, 50, 32]", "[4, 50, 64]", "2,112", "--"],
    ];
    let graph = read(&print(&rows, &[0, 1, 2, 3], 2112)).unwrap();
    assert_eq!(graph.output().shape, Shape::sequence(50, 64));
    let rows = [
        ["Net", "[4, 3, 8, 16, 16]", "[4, 32, 8, 16, 16]", "--", "--"],
        ["├─Conv3d: 1-1", "[4, 3, 8, 16, 16]", "[4, 32, 8, 16, 16]", "2,624", "[3, 3, 3]"],
    ];
    let graph = read(&print(&rows, &[0, 1, 2, 3, 4], 2624)).unwrap();
    assert_eq!(graph.output().shape.elements(), 32 * 8 * 16 * 16);
    assert!(flagged(&graph, FlagKind::UnknownOperation) && flagged(&graph, FlagKind::Assumption));
}

#[test]
fn hidden_blocks_keep_what_such_blocks_keep() {
    let rows = [
        ["Net", "[2, 64, 56, 56]", "[2, 256, 28, 28]", "--", "--"],
        ["├─Bottleneck: 1-1", "[2, 64, 56, 56]", "[2, 256, 28, 28]", "75,008", "--"],
    ];
    for columns in [&[0, 1, 2, 3][..], &[0, 2, 3]] {
        let graph = read(&print(&rows, columns, 75_008)).unwrap();
        let convolutions = graph.nodes().iter().filter(|node| matches!(node.op, Op::Conv(_)));
        assert_eq!(convolutions.count(), 3);
        assert_eq!(graph.output().shape, Shape::image(256, 28, 28));
        assert!(flagged(&graph, FlagKind::HiddenLayers));
        assert!(!flagged(&graph, FlagKind::SummaryMismatch));
    }
}

/// Entries that look for their shape among all nodes before them would take minutes.
#[test]
fn a_long_tree_takes_no_longer_for_each_entry() {
    let mut text = "Layer (type:depth-idx)  Input Shape     Output Shape    Param #\n".to_owned();
    for entry in 1..20_000 {
        let (input, output) = (format!("[1, {entry}, 9, 9]"), "[1, 1, 9, 9]");
        text += &format!("{:24}{input:16}{output:16}99\n", "Block: 1-1");
    }
    let start = std::time::Instant::now();
    let graph = read(&(text + "Total params: 1\n")).unwrap();
    assert!(graph.nodes().len() > 400_000);
    assert!(start.elapsed() < std::time::Duration::from_secs(60));
}

/// Kernels and channels of the largest size have more weights than can be counted.
#[test]
fn sizes_beyond_counting_are_read() {
    let most = 1u32 << 24;
    let header = "Layer (type:depth-idx)  Kernel Shape          Input Shape                Output Shape               Param #";
    let line = |kernel: &str, input: &str, output: &str| {
        format!("{:24}{kernel:22}{input:27}{output:27}1", "Conv2d: 1-1")
    };
    let (kernel, shape) = (format!("[{most}, {most}]"), format!("[1, {most}, 8, 8]"));
    let text = format!("{header}\n{}\nTotal params: 1\n", line(&kernel, &shape, &shape));
    let graph = read(&text).unwrap();
    assert!(matches!(graph.output().op, Op::Conv(conv) if conv.kernel == (most, most)));
}
