//! Trees as libraries print them, written short.

use super::super::{Summary, SummaryError, SummaryOptions, parse};
use crate::graph::{FlagKind, Graph, Op, Shape};
use crate::hf::{self, Options};

fn read(text: &str) -> Result<Graph, SummaryError> {
    parse(text, &SummaryOptions::default()).map(|Summary { graph, .. }| graph)
}

fn config(text: &str) -> Graph {
    hf::parse(text, &Options::default()).unwrap()
}

fn flagged(graph: &Graph, kind: FlagKind) -> bool {
    graph.flags.iter().any(|flag| flag.kind == kind)
}

fn bert(hidden: u32, attention: &str, head: &str, behind: &str) -> String {
    let layer = |index: u32| {
        format!(
            "        ({index}): BertLayer(\n          (attention): BertAttention(\n            (self): {attention}(\n\
             \x20             (query): Linear(in_features=128, out_features=128, bias=True)\n\
             \x20             (key): Linear(in_features=128, out_features=128, bias=True)\n\
             \x20             (value): Linear(in_features=128, out_features=128, bias=True)\n\
             \x20             (dropout): Dropout(p=0.1, inplace=False)\n            )\n\
             \x20           (output): BertSelfOutput(\n\
             \x20             (dense): Linear(in_features=128, out_features=128, bias=True)\n\
             \x20             (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)\n\
             \x20             (dropout): Dropout(p=0.1, inplace=False)\n            )\n          )\n\
             \x20         (intermediate): BertIntermediate(\n\
             \x20           (dense): Linear(in_features=128, out_features={hidden}, bias=True)\n\
             \x20           (intermediate_act_fn): GELUActivation()\n          )\n\
             \x20         (output): BertOutput(\n\
             \x20           (dense): Linear(in_features={hidden}, out_features=128, bias=True)\n\
             \x20           (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)\n\
             \x20           (dropout): Dropout(p=0.1, inplace=False)\n          )\n        )\n"
        )
    };
    let layers: String = (0..3).map(layer).collect();
    format!(
        "BertForSomething(\n  (bert): BertModel(\n    (embeddings): BertEmbeddings(\n\
         \x20     (word_embeddings): Embedding(9000, 128, padding_idx=0)\n\
         \x20     (position_embeddings): Embedding(512, 128)\n      (token_type_embeddings): Embedding(2, 128)\n\
         \x20     (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)\n\
         \x20     (dropout): Dropout(p=0.1, inplace=False)\n    )\n    (encoder): BertEncoder(\n\
         \x20     (layer): ModuleList(\n{layers}      )\n    )\n{head}\n){behind}\n"
    )
}

const MASKED: &str = "  )
  (cls): BertOnlyMLMHead(
    (predictions): BertLMPredictionHead(
      (transform): BertPredictionHeadTransform(
        (dense): Linear(in_features=128, out_features=128, bias=True)
        (transform_act_fn): GELUActivation()
        (LayerNorm): LayerNorm((128,), eps=1e-12, elementwise_affine=True)
      )
      (decoder): Linear(in_features=128, out_features=9000, bias=True)
    )
  )";
const CLASSES: &str = "    (pooler): BertPooler(
      (dense): Linear(in_features=128, out_features=128, bias=True)
      (activation): Tanh()
    )
  )
  (dropout): Dropout(p=0.1, inplace=False)
  (classifier): Linear(in_features=128, out_features=7, bias=True)";
const BARE: &str = "    (pooler): BertPooler(
      (dense): Linear(in_features=128, out_features=128, bias=True)
      (activation): Tanh()
    )
  )";
const ANSWERS: &str = "  )\n  (qa_outputs): Linear(in_features=128, out_features=2, bias=True)";

#[test]
fn a_bert_has_the_width_the_head_and_the_attention_that_it_shows() {
    for (hidden, attention, head, class, eager) in [
        (512, "BertSdpaSelfAttention", MASKED, "BertForMaskedLM", "sdpa"),
        (2048, "BertSdpaSelfAttention", MASKED, "BertForMaskedLM", "sdpa"),
        (512, "BertSelfAttention", MASKED, "BertForMaskedLM", "eager"),
        (512, "BertSdpaSelfAttention", CLASSES, "BertForSequenceClassification", "sdpa"),
        (512, "BertSdpaSelfAttention", ANSWERS, "BertForQuestionAnswering", "sdpa"),
        (512, "BertSdpaSelfAttention", BARE, "BertModel", "sdpa"),
    ] {
        let tree = read(&bert(hidden, attention, head, "")).unwrap();
        let config = config(&format!(
            r#"{{"model_type":"bert","hidden_size":128,"num_hidden_layers":3,"intermediate_size":{hidden},
                "num_attention_heads":2,"vocab_size":9000,"max_position_embeddings":512,"num_labels":7,
                "architectures":["{class}"],"attn_implementation":"{eager}"}}"#
        ));
        assert_eq!(tree.nodes(), config.nodes(), "{class} {hidden} {attention}");
        assert_eq!(tree.loss, config.loss);
        assert!(!flagged(&tree, FlagKind::SummaryMismatch), "{class}: {:?}", tree.flags);
        assert_eq!(flagged(&tree, FlagKind::Assumption), eager == "eager" || class == "BertModel");
    }
}

#[test]
fn counts_that_the_graph_does_not_meet_are_flagged() {
    let sdpa = "BertSdpaSelfAttention";
    let known = read(&bert(512, sdpa, MASKED, "")).unwrap().parameters();
    // The word table again, and the logits' bias once or twice.
    for extra in [0, 9000, 9000 * 128 + 9000, 9000 * 128 + 18_000] {
        let total = format!("\n=====\nTotal params: {}", known + extra);
        let graph = read(&bert(512, sdpa, MASKED, &total)).unwrap();
        assert!(!flagged(&graph, FlagKind::SummaryMismatch), "{extra}: {:?}", graph.flags);
    }
    let wrong = read(&bert(512, sdpa, MASKED, "\n=====\nTotal params: 30,000,000")).unwrap();
    assert!(flagged(&wrong, FlagKind::SummaryMismatch));
    // What the tree itself counts is believed rather than a total below it.
    let root = format!(", {known} params\n=====\nTotal params: 30,000,000");
    let graph = read(&bert(512, sdpa, MASKED, &root)).unwrap();
    assert!(!flagged(&graph, FlagKind::SummaryMismatch), "{:?}", graph.flags);
    // Layers that differ from the first.
    let text = bert(512, sdpa, MASKED, "");
    let pruned =
        text.replacen("features=128, out_features=512", "features=128, out_features=4096", 1);
    assert!(flagged(&read(&pruned).unwrap(), FlagKind::SummaryMismatch));
}

/// A pooler that only a second head reads, and a product before the logits of each token.
#[test]
fn small_products_that_are_left_out_are_no_mismatch() {
    let sdpa = "BertSdpaSelfAttention";
    let both = format!("{BARE}\n{}", MASKED.strip_prefix("  )\n").unwrap());
    let each = "  )
  (discriminator_predictions): ElectraDiscriminatorPredictions(
    (dense): Linear(in_features=128, out_features=128, bias=True)
    (dense_prediction): Linear(in_features=128, out_features=1, bias=True)
  )";
    for (head, output) in [(&*both, 9000), (each, 1)] {
        let graph = read(&bert(512, sdpa, head, "")).unwrap();
        assert_eq!(graph.output().shape, Shape::sequence(512, output));
        assert!(!flagged(&graph, FlagKind::SummaryMismatch), "{:?}", graph.flags);
    }
}

#[test]
fn a_llama_is_no_chain() {
    let layer = "      (0): LlamaDecoderLayer(
        (self_attn): LlamaSdpaAttention(
          (q_proj): Linear(in_features=512, out_features=512, bias=False)
          (k_proj): Linear(in_features=512, out_features=256, bias=False)
          (v_proj): Linear(in_features=512, out_features=256, bias=False)
          (o_proj): Linear(in_features=512, out_features=512, bias=False)
        )
        (mlp): LlamaMLP(
          (gate_proj): Linear(in_features=512, out_features=1024, bias=False)
          (up_proj): Linear(in_features=512, out_features=1024, bias=False)
          (down_proj): Linear(in_features=1024, out_features=512, bias=False)
          (act_fn): SiLU()
        )
        (input_layernorm): LlamaRMSNorm((512,), eps=1e-05)
        (post_attention_layernorm): LlamaRMSNorm((512,), eps=1e-05)
      )\n";
    let tree = format!(
        "LlamaForCausalLM(\n  (model): LlamaModel(\n    (embed_tokens): Embedding(1000, 512)\n    \
         (layers): ModuleList(\n{}    )\n    (norm): LlamaRMSNorm((512,), eps=1e-05)\n  )\n  (lm_head): \
         Linear(in_features=512, out_features=1000, bias=False)\n)\n",
        layer.repeat(4)
    );
    let config = config(
        r#"{"model_type":"llama","hidden_size":512,"num_hidden_layers":4,"intermediate_size":1024,
            "num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1000,
            "architectures":["LlamaForCausalLM"]}"#,
    );
    let tree = read(&tree).unwrap();
    assert_eq!(tree.nodes(), config.nodes());
    assert!(!flagged(&tree, FlagKind::SummaryMismatch), "{:?}", tree.flags);
}

#[test]
fn xlnet_is_as_long_as_asked_for() {
    let layer = "      (0): XLNetLayer(
        (ff): XLNetFeedForward(
          (layer_1): Linear(in_features=64, out_features=100, bias=True)
          (layer_2): Linear(in_features=100, out_features=64, bias=True)
        )
      )\n";
    let tree = format!(
        "XLNet(\n  (word_embedding): Embedding(32000, 64)\n    (layer): ModuleList(\n{layer}))\n"
    );
    let tokens = |tokens| {
        let graph = parse(&tree, &SummaryOptions { tokens }).unwrap().graph;
        graph.nodes()[0].shape.height
    };
    assert_eq!((tokens(512), tokens(128)), (512, 128));
}

#[test]
fn a_chain_has_the_features_that_its_products_read() {
    let tree = "Net(
  (embed): Embedding(1000, 64)
  (block): Block(
    (norm): MyRMSNorm((64,), eps=1e-6)
    (q): Linear(in_features=64, out_features=128, bias=False)
    (k): Linear(in_features=64, out_features=128, bias=False)
    (v): Linear(in_features=64, out_features=128, bias=False)
    (o): Linear(in_features=128, out_features=64, bias=False)
    (gate): Linear(in_features=64, out_features=256, bias=False)
    (up): Linear(in_features=64, out_features=256, bias=False)
    (down): Linear(in_features=256, out_features=64, bias=True)
    (rotary): Rotary()
  )
)\n";
    let graph = read(tree).unwrap();
    let weights = 64_000 + 64 + 4 * 64 * 128 + 3 * 64 * 256 + 64;
    assert_eq!(graph.parameters(), weights);
    assert!(graph.has_attention(), "no SM activity is predicted for attention");
    assert!(graph.flags.iter().any(|flag| flag.detail.contains("Rotary")), "{:?}", graph.flags);
    // Query, key and value from one product, or from one that is not shown.
    for attention in [
        "(qkv): Linear(in_features=64, out_features=192, bias=True)",
        "(out_proj): NonDynamicallyQuantizableLinear(in_features=64, out_features=64, bias=True)",
    ] {
        let tree = format!("Net(\n  (embed): Embedding(100, 64)\n  {attention}\n)\n");
        assert!(read(&tree).unwrap().has_attention(), "{attention}");
    }
}

#[test]
fn images_without_a_size_are_refused() {
    let tree = "ResNet(\n  (conv1): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), bias=False)\n  \
                (bn1): BatchNorm2d(64)\n)\n";
    let error = read(tree).unwrap_err();
    assert_eq!((error.line, error.column), (2, 3));
    assert!(error.problem.contains("torchinfo"), "{error}");
}

#[test]
fn more_layers_than_any_model_has_are_refused() {
    let layers = "(0): BertLayer(\n)\n".repeat(10_001);
    let error = read(&format!("Net(\n(words): Embedding(10, 64)\n{layers})\n")).unwrap_err();
    assert!(error.problem.contains("more layers"), "{error}");
}

/// PyTorch writes equal neighbours of a list once.
#[test]
fn repeated_modules_are_written_out() {
    let whole = bert(512, "BertSdpaSelfAttention", MASKED, "");
    let (before, rest) = whole.split_once("        (0): BertLayer(").unwrap();
    let (layer, _) = rest.split_once("        (1): BertLayer(").unwrap();
    let (_, after) = whole.rsplit_once(layer).unwrap();
    let short = format!("{before}        (0-2): 3 x BertLayer({layer}{after}");
    assert!(short.len() < whole.len());
    let graph = read(&short).unwrap();
    assert_eq!(graph, read(&whole).unwrap());
    // A layer inside another, and one without anything inside.
    let tree = "Net(\n  (0-1): 2 x Pair(\n    (0-2): 3 x Linear(in_features=8, out_features=8, bias=True)\n  )\n)\n";
    assert_eq!(read(tree).unwrap().parameters(), 6 * 72);
}

#[test]
fn more_modules_than_any_net_has_are_refused() {
    let deep: String =
        (0..40).map(|depth| format!("{}(0-9): 10 x A(\n", " ".repeat(depth))).collect();
    let closed = ")\n".repeat(41);
    for modules in [
        format!("Net(\n{deep}{closed}"),
        "Net(\n  (0-9): 18446744073709551615 x A()\n)\n".to_owned(),
        "Net(\n  (0-9): 200001 x A()\n)\n".to_owned(),
    ] {
        let error = read(&modules).unwrap_err();
        assert!(error.problem.contains("more than 200000 layers"), "{error}");
    }
    assert!(read("Net(\n  (0): 0 x Linear(in_features=8, out_features=8)\n)\n").is_ok());
}

/// The class is the first line, or that of a module which another wraps.
#[test]
fn the_class_tells_whether_tokens_or_samples_get_labels() {
    let plain = bert(512, "BertSdpaSelfAttention", &CLASSES.replace(BARE, "  )"), "");
    let output = |tree: &str| read(tree).unwrap().output().shape;
    assert_eq!(output(&plain), Shape::features(7));
    let tokens = plain.replace("BertForSomething(", "BertForTokenClassification(");
    assert_eq!(output(&tokens), Shape::sequence(512, 7));
    let wrapped = format!("DataParallel(\n(module): {tokens})\n");
    assert_eq!(output(&wrapped), Shape::sequence(512, 7));
}

/// Where one class computes attention either way, other lines tell the release.
#[test]
fn the_release_tells_how_attention_is_computed() {
    let eager = |tree: &str| {
        let graph = read(tree).unwrap();
        assert!(
            graph.flags.iter().any(|flag| flag.detail.contains("is taken to")),
            "{:?}",
            graph.flags
        );
        graph.nodes().iter().any(|node| matches!(node.op, Op::Attention(way) if way.eager))
    };
    let old = bert(512, "BertSelfAttention", MASKED, "");
    let new = old.replace("elementwise_affine=True", "elementwise_affine=True, bias=True");
    assert!(eager(&old) && !eager(&new));
    let rotary = "  (rotary_emb): LlamaRotaryEmbedding()\n";
    let llama = |inside: &str| {
        format!(
            "LlamaForCausalLM(\n  (embed_tokens): Embedding(1000, 512)\n  (0): LlamaDecoderLayer(\n    \
             (q_proj): Linear(in_features=512, out_features=512, bias=False)\n    \
             (k_proj): Linear(in_features=512, out_features=256, bias=False)\n    \
             (gate_proj): Linear(in_features=512, out_features=1024, bias=False)\n  {inside}  )\n{rotary}  \
             (lm_head): Linear(in_features=512, out_features=1000, bias=False)\n)\n"
        )
    };
    assert!(eager(&llama(rotary)) && !eager(&llama("")));
}
