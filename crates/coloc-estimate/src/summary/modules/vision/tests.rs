//! Trees of vision transformers, written short.

use super::super::super::{Summary, SummaryError, SummaryOptions, parse};
use crate::graph::{FlagKind, Graph, Op, Shape};
use crate::hf::{self, Options};

fn read(text: &str) -> Result<Graph, SummaryError> {
    parse(text, &SummaryOptions::default()).map(|Summary { graph, .. }| graph)
}

fn told(graph: &Graph, what: &str) -> bool {
    graph.flags.iter().any(|flag| flag.detail.contains(what))
}

fn mismatched(graph: &Graph) -> bool {
    graph.flags.iter().any(|flag| flag.kind == FlagKind::SummaryMismatch)
}

/// All parameters of a ViT-B/16.
const BASE: u64 = 86_567_656;

const MULTIHEAD: &str = "EncoderBlock(
      (ln_1): LayerNorm((768,), eps=1e-06, elementwise_affine=True)
      (self_attention): MultiheadAttention(
        (out_proj): NonDynamicallyQuantizableLinear(in_features=768, out_features=768, bias=True)
      )
      (dropout): Dropout(p=0.0, inplace=False)
      (ln_2): LayerNorm((768,), eps=1e-06, elementwise_affine=True)
      (mlp): MLPBlock(
        (0): Linear(in_features=768, out_features=3072, bias=True)
        (1): GELU(approximate='none')
        (2): Dropout(p=0.0, inplace=False)
        (3): Linear(in_features=3072, out_features=768, bias=True)
        (4): Dropout(p=0.0, inplace=False)
      )
    )\n";
const PACKED: &str = "Block(
      (norm1): LayerNorm((768,), eps=1e-06, elementwise_affine=True)
      (attn): Attention(
        (qkv): Linear(in_features=768, out_features=2304, bias=True)
        (q_norm): Identity()
        (attn_drop): Dropout(p=0.0, inplace=False)
        (proj): Linear(in_features=768, out_features=768, bias=True)
        (proj_drop): Dropout(p=0.0, inplace=False)
      )
      (drop_path1): Identity()
      (norm2): LayerNorm((768,), eps=1e-06, elementwise_affine=True)
      (mlp): Mlp(
        (fc1): Linear(in_features=768, out_features=3072, bias=True)
        (act): GELU(approximate='none')
        (fc2): Linear(in_features=3072, out_features=768, bias=True)
      )
    )\n";
const APART: &str = "ViTLayer(
      (attention): ViTAttention(
        (q_proj): Linear(in_features=768, out_features=768, bias=True)
        (k_proj): Linear(in_features=768, out_features=768, bias=True)
        (v_proj): Linear(in_features=768, out_features=768, bias=True)
        (o_proj): Linear(in_features=768, out_features=768, bias=True)
      )
      (layernorm_before): LayerNorm((768,), eps=1e-12, elementwise_affine=True, bias=True)
      (layernorm_after): LayerNorm((768,), eps=1e-12, elementwise_affine=True, bias=True)
      (mlp): ViTMLP(
        (activation_fn): GELUActivation()
        (fc1): Linear(in_features=768, out_features=3072, bias=True)
        (fc2): Linear(in_features=3072, out_features=768, bias=True)
      )
    )\n";

/// The tree of a model with twelve such layers; PyTorch writes them once in a list, and each in a sequence.
fn tree(layer: &str, listed: bool, behind: &str) -> String {
    let layers = match listed {
        true => format!("    (0-11): 12 x {layer}"),
        false => (0..12).map(|index| format!("    ({index}): {layer}")).collect(),
    };
    format!(
        "VisionTransformer(\n  (proj): Conv2d(3, 768, kernel_size=(16, 16), stride=(16, 16))\n  \
         (pos_drop): Dropout(p=0.0, inplace=False)\n  (blocks): Layers(\n{layers}  )\n  \
         (norm): LayerNorm((768,), eps=1e-06, elementwise_affine=True)\n  \
         (head): Linear(in_features=768, out_features=1000, bias=True)\n){behind}\n"
    )
}

#[test]
fn a_tree_tells_the_model() {
    for (layer, listed) in [(MULTIHEAD, false), (PACKED, false), (APART, true), (APART, false)] {
        let graph = read(&tree(layer, listed, "")).unwrap();
        assert_eq!(graph.parameters(), BASE, "{layer}");
        assert_eq!(graph.nodes()[0].shape, Shape::image(3, 224, 224));
        assert_eq!(graph.output().shape, Shape::features(1000));
        assert!(!mismatched(&graph), "{:?}", graph.flags);
        assert!(told(&graph, "size of an image") && told(&graph, "number of heads"));
        assert!(told(&graph, "never compared"));
    }
}

#[test]
fn a_hugging_face_tree_is_its_config() {
    let config = hf::parse(
        r#"{"model_type":"vit","hidden_size":768,"num_hidden_layers":12,"intermediate_size":3072,"image_size":224,
            "num_attention_heads":12,"patch_size":16,"num_labels":1000,"hidden_dropout_prob":0.0,
            "architectures":["ViTForImageClassification"]}"#,
        &Options::default(),
    );
    assert_eq!(read(&tree(APART, true, "")).unwrap().nodes(), config.unwrap().nodes());
}

/// The table of positions is as long as there are patches.
#[test]
fn a_count_tells_the_size_of_an_image() {
    let larger = BASE + (24 * 24 - 14 * 14) * 768;
    for (counted, side) in [(BASE, 224), (larger, 384)] {
        for behind in [format!(", {counted} params"), format!("\nTotal params: {counted}")] {
            let graph = read(&tree(PACKED, false, &behind)).unwrap();
            assert_eq!(graph.nodes()[0].shape, Shape::image(3, side, side));
            assert_eq!(graph.parameters(), counted);
            assert!(!mismatched(&graph) && !told(&graph, "size of an image"));
        }
    }
    for counted in [BASE + 1_000_000, 5, 1 << 47] {
        let graph = read(&tree(PACKED, false, &format!(", {counted} params"))).unwrap();
        assert!(mismatched(&graph) && told(&graph, "size of an image"), "{counted}");
    }
}

#[test]
fn rates_and_classes_are_those_of_the_tree() {
    let eager = |layer: &str| {
        let graph = read(&tree(layer, false, "")).unwrap();
        graph.nodes().iter().any(|node| matches!(node.op, Op::Attention(way) if way.eager))
    };
    assert!(!eager(PACKED) && eager(&PACKED.replace("        (q_norm): Identity()\n", "")));
    assert!(
        !eager(MULTIHEAD)
            && !eager(APART)
            && !eager(&APART.replace("ViTAttention", "ViTSelfAttention"))
    );
    let dropped = "(dropout): Dropout(p=0.0, inplace=False)\n        (o_proj)";
    let dropped = APART.replace("(o_proj)", dropped);
    assert!(eager(&dropped.replace("ViTAttention", "ViTSelfAttention")));
    assert!(!eager(&dropped.replace("ViTAttention", "ViTSdpaSelfAttention")));
    let dropouts = |layer: &str| {
        let graph = read(&tree(layer, false, "")).unwrap();
        graph.nodes().iter().filter(|node| matches!(node.op, Op::Dropout { .. })).count()
    };
    assert_eq!(dropouts(PACKED), 0);
    assert_eq!(
        dropouts(&PACKED.replace("(proj_drop): Dropout(p=0.0", "(proj_drop): Dropout(p=0.1")),
        37
    );
    assert_eq!(
        dropouts(&PACKED.replace("(attn_drop): Dropout(p=0.0", "(attn_drop): Dropout(p=0.1")),
        0
    );
    let nodes = |layer: &str| read(&tree(layer, false, "")).unwrap().nodes().len();
    let dropped =
        PACKED.replace("(drop_path1): Identity()", "(drop_path1): DropPath(drop_prob=0.1)");
    assert_eq!(nodes(&dropped), nodes(PACKED) + 24);
}

#[test]
fn bare_models_and_two_heads_are_read() {
    let whole = tree(APART, true, "");
    let head = "  (head): Linear(in_features=768, out_features=1000, bias=True)\n";
    let pooler = "  (pooler): ViTPooler(\n    (dense): Linear(in_features=768, out_features=768, bias=True)\n    \
                  (activation): Tanh()\n  )\n";
    for bare in ["", pooler] {
        let graph = read(&whole.replace(head, bare)).unwrap();
        assert_eq!(graph.parameters(), BASE - 769_000);
        assert!(!mismatched(&graph) && told(&graph, "no head"), "{:?}", graph.flags);
    }
    let graph = read(&whole.replace(head, &head.repeat(2))).unwrap();
    assert_eq!(graph.parameters(), BASE + 769_000 + 2 * 768);
    assert!(!mismatched(&graph), "{:?}", graph.flags);
}

/// Other nets of images, and trees that make no sense, are refused as before.
#[test]
fn trees_of_other_nets_of_images_are_refused() {
    let whole = tree(PACKED, false, "");
    for (from, to) in [
        ("stride=(16, 16)", "stride=(4, 4)"),
        ("kernel_size=(16, 16)", "kernel_size=(0, 16)"),
        ("kernel_size=(16, 16)", "kernel_size=16"),
        ("Conv2d(3, 768", "Conv2d(3, 64"),
        ("(drop_path1): Identity()", "(ls1): LayerScale()"),
        ("(norm): LayerNorm", "(norm): BatchNorm2d"),
        ("(head): Linear(in_features=768, out_features=1000, bias=True)", "(head): LSTM(768, 10)"),
        ("(fc2): Linear(in_features=3072, out_features=768, bias=True)", "(fc2): Identity()"),
    ] {
        let other = whole.replace(from, to);
        assert_ne!(other, whole);
        assert!(read(&other).unwrap_err().problem.contains("how large its images are"), "{to}");
    }
    let poolers = whole.replace("(head): Linear", "(dense): Pooler(\n  )\n  (head): Linear");
    assert!(read(&poolers).is_ok());
    let layers = tree(APART, true, "").replace("12 x ", "10001 x ");
    assert!(read(&layers).is_err());
}
