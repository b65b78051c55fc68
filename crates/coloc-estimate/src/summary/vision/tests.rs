//! Tables and trees as torchvision, timm and Hugging Face give them, written short.

use super::super::{Summary, SummaryOptions, parse};
use crate::graph::{Attention, FlagKind, Graph, Op, Shape, text};
use crate::learned::DEFAULT_ENVIRONMENT;
use crate::run::RunConfig;
use crate::{Estimator, ReplayEstimator};

/// All parameters of a ViT-B/16.
const BASE: u64 = 86_567_656;

fn read(text: &str) -> Graph {
    let Summary { graph, .. } = parse(text, &SummaryOptions::default()).unwrap();
    graph
}

fn flagged(graph: &Graph, kind: FlagKind) -> bool {
    graph.flags.iter().any(|flag| flag.kind == kind)
}

fn told(graph: &Graph, what: &str) -> bool {
    graph.flags.iter().any(|flag| flag.detail.contains(what))
}

fn attention(graph: &Graph) -> Attention {
    let of = |op: &Op| match op {
        Op::Attention(attention) => Some(*attention),
        _ => None,
    };
    graph.nodes().iter().find_map(|node| of(&node.op)).expect("a transformer attends")
}

/// Parameters as told, and no more doubt than a model that was not measured has.
fn is_whole(graph: &Graph, parameters: u64) -> bool {
    use FlagKind::{HiddenLayers, SummaryMismatch, UnknownOperation};
    let sound =
        ![HiddenLayers, SummaryMismatch, UnknownOperation].iter().any(|k| flagged(graph, *k));
    sound && flagged(graph, FlagKind::Unverified) && graph.parameters() == parameters
}

const TORCHVISION: &str = "LayerNorm-1 [-1, 197, 768] 1,536
MultiheadAttention-1 [[-1, 197, 768]] 0
Dropout-1 [-1, 197, 768] 0
LayerNorm-1 [-1, 197, 768] 1,536
Linear-1 [-1, 197, 3072] 2,362,368
GELU-1 [-1, 197, 3072] 0
Dropout-1 [-1, 197, 3072] 0
Linear-1 [-1, 197, 768] 2,360,064
Dropout-1 [-1, 197, 768] 0
EncoderBlock-1 [-1, 197, 768] 0\n";

fn torchvision(layers: usize) -> String {
    let total = 590_592 + layers * 4_725_504 + 1_536 + 769_000;
    format!(
        "Layer (type)\nConv2d-1 [-1, 768, 14, 14] 590,592\nDropout-1 [-1, 197, 768] 0\n{}\
         LayerNorm-1 [-1, 197, 768] 1,536\nEncoder-1 [-1, 197, 768] 0\nLinear-1 [-1, 1000] 769,000\n\
         Total params: {total}\nInput size (MB): 0.57\n",
        TORCHVISION.repeat(layers)
    )
}

const TIMM: &str = "LayerNorm-1 [-1, 197, 768] 1,536
Linear-1 [-1, 197, 2304] 1,771,776
Identity-1 [-1, 12, 197, 64] 0
Linear-1 [-1, 197, 768] 590,592
Dropout-1 [-1, 197, 768] 0
Attention-1 [-1, 197, 768] 0
Identity-1 [-1, 197, 768] 0
LayerNorm-1 [-1, 197, 768] 1,536
Linear-1 [-1, 197, 3072] 2,362,368
GELU-1 [-1, 197, 3072] 0
Linear-1 [-1, 197, 768] 2,360,064
Mlp-1 [-1, 197, 768] 0
Identity-1 [-1, 197, 768] 0
Block-1 [-1, 197, 768] 0\n";

fn timm(layers: usize) -> String {
    let total = 590_592 + layers * 7_087_872 + 1_536 + 769_000;
    format!(
        "Layer (type)\nConv2d-1 [-1, 768, 14, 14] 590,592\nIdentity-1 [-1, 196, 768] 0\n\
         PatchEmbed-1 [-1, 196, 768] 0\nDropout-1 [-1, 197, 768] 0\n{}LayerNorm-1 [-1, 197, 768] 1,536\n\
         Identity-1 [-1, 768] 0\nLinear-1 [-1, 1000] 769,000\nTotal params: {total}\nInput size (MB): 0.57\n",
        TIMM.repeat(layers)
    )
}

/// Lines of a torchinfo tree: a layer, its result without the batch, its parameters.
fn torchinfo(layer: &[(&str, &str, &str)]) -> String {
    let line = |(name, shape, parameters): &(&str, &str, &str)| {
        format!("{name:<48}{:<26}{parameters}\n", format!("[32, {shape}]"))
    };
    let before = [
        ("VisionTransformer", "1000", "768"),
        ("├─Conv2d: 1-1", "768, 14, 14", "590,592"),
        ("├─Encoder: 1-2", "197, 768", "151,296"),
        ("│    └─Dropout: 2-1", "197, 768", "--"),
        ("│    └─Sequential: 2-2", "197, 768", "--"),
    ];
    let after = [
        ("│    └─LayerNorm: 2-3", "197, 768", "1,536"),
        ("├─Sequential: 1-3", "1000", "--"),
        ("│    └─Linear: 2-4", "1000", "769,000"),
    ];
    let lines = before.iter().chain((0..12).flat_map(|_| layer)).chain(&after);
    let lines: String = lines.map(line).collect();
    let header = format!("{:<48}{:<26}Param #", "Layer (type:depth-idx)", "Output Shape");
    format!("{header}\n{lines}Total params: {BASE}\nInput size (MB): 19.27\n")
}

const CLOSED: &[(&str, &str, &str)] = &[("│    │    └─EncoderBlock: 3-1", "197, 768", "7,087,872")];
const OPEN: &[(&str, &str, &str)] = &[
    ("│    │    └─EncoderBlock: 3-1", "197, 768", "--"),
    ("│    │    │    └─LayerNorm: 4-1", "197, 768", "1,536"),
    ("│    │    │    └─MultiheadAttention: 4-2", "197, 768", "2,362,368"),
    ("│    │    │    └─LayerNorm: 4-4", "197, 768", "1,536"),
    ("│    │    │    └─MLPBlock: 4-5", "197, 768", "--"),
    ("│    │    │    │    └─Linear: 5-1", "197, 3072", "2,362,368"),
    ("│    │    │    │    └─GELU: 5-2", "197, 3072", "--"),
    ("│    │    │    │    └─Linear: 5-4", "197, 768", "2,360,064"),
];

#[test]
fn all_dialects_tell_the_same_model() {
    for table in [torchvision(12), timm(12), torchinfo(CLOSED), torchinfo(OPEN)] {
        let graph = read(&table);
        assert!(is_whole(&graph, BASE), "{}: {:?}", graph.parameters(), graph.flags);
        assert_eq!(graph.nodes()[0].shape, Shape::image(3, 224, 224));
        assert_eq!(graph.output().shape, Shape::features(1000));
        let attention = attention(&graph);
        assert_eq!((attention.heads, attention.keys, attention.eager), (12, 197, false));
    }
    for tree in [CLOSED, OPEN] {
        assert_eq!(read(&torchinfo(tree)).nodes(), read(&torchvision(12)).nodes());
    }
    for (layers, parameters) in [(1, 8_601_064), (2, 15_688_936)] {
        assert!(is_whole(&read(&torchvision(layers)), parameters));
        assert!(is_whole(&read(&timm(layers)), parameters));
    }
}

/// What a dialect hides is said.
#[test]
fn assumptions_are_told() {
    let (vision, timm) = (read(&torchvision(12)), read(&timm(12)));
    assert!(told(&vision, "number of heads") && told(&vision, "MultiheadAttention holds"));
    assert!(!told(&timm, "number of heads") && told(&timm, "rate of dropout"));
    assert!(told(&read(&torchinfo(CLOSED)), "inside of EncoderBlock"));
}

/// The same as a graph of the text format, which has no tokens before others and frees by operation.
const BY_HAND: &str = "input 3x224x224
def layer
  ln
  linear 2304
  attention 12 nodropout
  o = linear 768
  s = add < in o
  ln
  linear 3072
  gelu
  n = linear 768
  add < s n
end
conv 768 k16 s16
select 768x197x1
position
repeat 12
  layer
end
ln
select 768
linear 1000\n";

#[test]
fn memory_is_that_of_a_graph_by_hand() {
    let estimator = ReplayEstimator::shipped(DEFAULT_ENVIRONMENT).unwrap();
    let by_hand = text::parse(BY_HAND).unwrap();
    assert_eq!(by_hand.parameters() + 768, BASE, "but for the class token");
    let copied = BY_HAND
        .replace("  linear 2304\n", "  copy\n  linear 2304\n  copy\n")
        .replace("nodropout\n", "nodropout\n  copy\n");
    for (by_hand, table) in [(by_hand, timm(12)), (text::parse(&copied).unwrap(), torchvision(12))]
    {
        for batch in [8, 32, 128] {
            let mib = |graph: &Graph| estimator.estimate(graph, &RunConfig::new(batch)).peak.mib();
            let mut printed = read(&table);
            let (wanted, layers) = (mib(&by_hand), mib(&printed));
            assert!((layers / wanted - 1.0).abs() < 0.04, "{batch}: {layers} for {wanted}");
            // But for the freeing of whole layers, which the text format does not know.
            printed.blocks.clear();
            let found = mib(&printed);
            println!(
                "batch {batch}: by hand {wanted:.0}, table {found:.0}, layers freed whole {layers:.0}"
            );
            assert!((found / wanted - 1.0).abs() < 0.01, "{batch}: {found} for {wanted}");
        }
    }
}

#[test]
fn rows_tell_heads_scores_paths_and_pooling() {
    let table = timm(12);
    let graph = read(&table.replace("[-1, 12, 197, 64]", "[-1, 6, 197, 128]"));
    assert_eq!(attention(&graph).heads, 6);
    let scores = "Dropout-1 [-1, 12, 197, 197] 0\nLinear-1 [-1, 197, 768] 590,592";
    let graph = read(&table.replace("Linear-1 [-1, 197, 768] 590,592", scores));
    assert!(attention(&graph).eager);
    // The first block leaves nothing out.
    let (first, later) = table.split_once("Block-1").unwrap();
    let dropped = later.replace("Identity-1 [-1, 197, 768]", "DropPath-1 [-1, 197, 768]");
    let graph = read(&format!("{first}Block-1{dropped}"));
    assert!(is_whole(&graph, BASE));
    assert_eq!(graph.nodes().len(), read(&table).nodes().len() + 2 * 12);
    let (from, to) =
        ("LayerNorm-1 [-1, 197, 768] 1,536\nIdentity-1 [-1, 768]", "LayerNorm-1 [-1, 768] 1,536");
    let graph = read(&table.replace(&format!("{from} 0"), to));
    assert!(is_whole(&graph, BASE));
    assert!(graph.nodes().iter().any(|node| node.op == Op::GlobalPool));
    // Two heads, for the class and for what a teacher says; a second token of its own.
    let head = "Linear-1 [-1, 1000] 769,000\n";
    let both = table.replace(head, &head.repeat(2)).replace("[-1, 197,", "[-1, 198,");
    let both = both.replace("Total params: 86415592", "Total params: 87184592");
    assert!(is_whole(&read(&both.replace("12, 197, 64", "12, 198, 64")), BASE + 769_000 + 2 * 768));
}

/// Nothing is believed that does not add up: the rest is read as before, with its flags.
#[test]
fn what_does_not_add_up_is_no_vision_transformer() {
    let table = timm(12);
    for (from, to) in [
        ("Total params: 86415592", "Total params: 96415592"),
        ("2,362,368", "2,362,369"),
        ("GELU", "LayerScale"),
        ("Linear-1 [-1, 1000] 769,000\n", "LSTM-1 [-1, 1000] 769,000\n"),
        ("Input size (MB): 0.57", "Input size (MB): 2.25"),
        ("[-1, 768, 14, 14]", "[-1, 768, 13, 14]"),
        ("[-1, 768, 14, 14] 590,592", "[-1, 768, 14, 14] 589,824"),
        ("[-1, 768, 14, 14] 590,592", "[-1, 16777216, 16777216, 16777216] 1"),
        ("Block-1 [-1, 197, 768]", "Block-1 [-1, 1, 16777216]"),
        ("Block-1 [-1, 197, 768]", "Block-1 [-1, 16777216, 16777216]"),
    ] {
        let other = table.replace(from, to);
        assert_ne!(other, table);
        let graph = read(&other);
        assert!(!told(&graph, "vision transformers"), "{to}: {:?}", graph.flags);
        assert!(!graph.flags.is_empty(), "{to}");
    }
    // One block that differs.
    assert!(!told(&read(&table.replacen("Mlp-1", "Attention-1", 1)), "vision transformers"));
}

#[test]
fn a_long_table_of_blocks_takes_no_longer_for_each() {
    let start = std::time::Instant::now();
    let blocks = "Block-1 [-1, 2, 2] 0\n".repeat(150_000);
    read(&format!("Layer (type)\nConv2d-1 [-1, 2, 1, 2] 8\n{blocks}Total params: 8\n"));
    assert!(start.elapsed() < std::time::Duration::from_secs(60));
}
