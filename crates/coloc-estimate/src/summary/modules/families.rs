//! Trees of the families that are known as a whole.

use super::super::MOST_LAYERS;
use super::module::Module;
use super::{SummaryError, SummaryOptions, Tree};
use crate::graph::{Activation, FlagKind, Graph};
use crate::hf::{Encoder, Gpt2, Head, Llama, Options, XlNet, check_positions};

/// Features of one attention head, which no tree shows, in encoders and in GPT-2.
const HEAD_WIDTH: u32 = 64;
/// The same in a LLaMA.
const WIDE_HEAD: u32 = 128;
/// Layers of an encoder that is built like BERT.
const ENCODER_LAYERS: [&str; 5] =
    ["BertLayer", "RobertaLayer", "XLMRobertaLayer", "CamembertLayer", "ElectraLayer"];
/// Layers of a decoder that is built like LLaMA.
const LLAMA_LAYERS: [&str; 3] = ["LlamaDecoderLayer", "MistralDecoderLayer", "Qwen2DecoderLayer"];

/// Refuses trees with more layers than any model of these families has.
pub(super) fn check_layers(tree: &Tree<'_>) -> Result<(), SummaryError> {
    let of_a_family = |module: &&Module<'_>| {
        ENCODER_LAYERS.contains(&module.kind)
            || LLAMA_LAYERS.contains(&module.kind)
            || matches!(module.kind, "GPT2Block" | "XLNetLayer")
    };
    if tree.modules.iter().filter(of_a_family).count() <= MOST_LAYERS {
        return Ok(());
    }
    let problem = format!("the tree has more layers than any model has ({MOST_LAYERS})");
    Err(SummaryError::new(1, 1, problem))
}

/// What all families are read from.
struct Model<'a> {
    class: &'a str,
    /// What stands before the first layer, in it, and behind the last one.
    before: &'a [Module<'a>],
    layer: &'a [Module<'a>],
    after: &'a [Module<'a>],
    layers: u32,
    vocabulary: u32,
    /// Of the word table.
    embedding: u32,
}

/// The graph of a tree of a known family.
pub(super) fn find(tree: &Tree<'_>, options: &SummaryOptions) -> Option<Graph> {
    let is = |kinds: &[&str]| tree.modules.iter().any(|module| kinds.contains(&module.kind));
    let tuning = Options { tokens: options.tokens, ..Options::default() };
    let mut assumed = Vec::new();
    let (model, mut graph, left_out) = if is(&ENCODER_LAYERS) {
        let model = Model::of(tree, &ENCODER_LAYERS)?;
        let encoder = model.encoder(&mut assumed)?;
        let biases = 2 * u64::from(model.vocabulary);
        let left_out = model.left_out(encoder.head).saturating_add(biases);
        let mut graph = encoder.graph(&tuning);
        model.check_positions(&mut graph, options.tokens);
        (model, graph, left_out)
    } else if is(&["GPT2Block"]) {
        let model = Model::of(tree, &["GPT2Block"])?;
        let mut graph = model.gpt2(&mut assumed)?.graph(&tuning);
        model.check_positions(&mut graph, options.tokens);
        (model, graph, 0)
    } else if is(&LLAMA_LAYERS) {
        let model = Model::of(tree, &LLAMA_LAYERS)?;
        let graph = model.llama(&mut assumed)?.graph(&tuning);
        (model, graph, 0)
    } else if is(&["XLNetLayer"]) {
        let model = Model::of(tree, &["XLNetLayer"])?;
        let graph = model.xlnet()?.graph(&tuning);
        (model, graph, 0)
    } else {
        return None;
    };
    for assumption in assumed {
        graph.flag(FlagKind::Assumption, assumption);
    }
    let shared = u64::from(model.vocabulary) * u64::from(model.embedding);
    tree.check(&mut graph, shared, left_out, 0);
    Some(graph)
}

impl<'a> Model<'a> {
    fn of(tree: &'a Tree<'a>, kinds: &[&str]) -> Option<Self> {
        let modules = &tree.modules[..];
        let is_layer = |module: &Module<'_>| kinds.contains(&module.kind);
        let first = modules.iter().position(is_layer)?;
        let last = modules.iter().rposition(is_layer)?;
        let indent = modules[first].indent;
        let length = |from: usize| {
            let inside = modules[from + 1..].iter().take_while(|module| module.indent > indent);
            inside.count()
        };
        let words = modules[..first].iter().find(|module| module.kind == "Embedding")?;
        Some(Model {
            class: tree.class,
            before: &modules[..first],
            layer: &modules[first + 1..=first + length(first)],
            after: &modules[last + 1 + length(last)..],
            layers: modules.iter().filter(|module| is_layer(module)).count() as u32,
            vocabulary: words.placed(0)?,
            embedding: words.placed(1).filter(|width| *width <= 1 << 16)?,
        })
    }

    /// The products of a layer: features read and written.
    fn products(&self) -> Vec<(u32, u32)> {
        self.layer.iter().filter_map(Module::product).collect()
    }

    fn named(&self, name: &str) -> Option<(u32, u32)> {
        self.layer.iter().find(|module| module.name == name)?.product()
    }

    /// Rows of the tables beside the words': positions and token types.
    fn placed(&self) -> u32 {
        let tables = self.before.iter().filter(|module| module.kind == "Embedding").skip(1);
        tables.filter_map(|table| table.placed(0)).fold(0, u32::saturating_add)
    }

    fn check_positions(&self, graph: &mut Graph, tokens: u32) {
        let is_table = |module: &&Module<'_>| {
            module.kind == "Embedding" && matches!(module.name, "position_embeddings" | "wpe")
        };
        if let Some(rows) = self.before.iter().find(is_table).and_then(|table| table.placed(0)) {
            check_positions(graph, rows, tokens);
        }
    }

    /// What follows the layers, and whether a product stands before the last one.
    fn head(&self) -> (Head, bool) {
        let products: Vec<_> =
            self.after.iter().filter(|module| module.product().is_some()).collect();
        let written = |module: &Module<'_>| module.product().map_or(0, |(_, written)| written);
        if products.iter().any(|module| written(module) == self.vocabulary) {
            return (Head::Language, false);
        }
        let Some((last, earlier)) = products.split_last() else { return (Head::Bare, false) };
        let pooler = |module: &Module<'_>| module.kind.ends_with("Pooler") && module.container;
        if last.name == "dense" && self.after.iter().any(pooler) {
            return (Head::Bare, false);
        }
        let labels = written(last);
        // The class may stand inside another, such as DataParallel.
        let classes = self.before.iter().map(|module| module.kind).chain([self.class]);
        let each = matches!(last.name, "qa_outputs" | "dense_prediction")
            || classes.into_iter().any(|class| class.ends_with("ForTokenClassification"));
        let head = if each { Head::EachToken { labels } } else { Head::Sample { labels } };
        (head, !earlier.is_empty())
    }

    /// Parameters behind the layers that an encoder's graph leaves out: products before the logits of each token,
    /// and a pooler whose result is not trained. The logits' bias, which some count twice, is not among them.
    fn left_out(&self, head: Head) -> u64 {
        let pooler = |index: usize| {
            index.checked_sub(1).is_some_and(|before| self.after[before].kind.ends_with("Pooler"))
        };
        let products =
            self.after.iter().enumerate().filter(|(_, module)| module.product().is_some());
        let last = products.clone().next_back().map(|(index, _)| index);
        let unread = products.filter(|&(index, _)| match head {
            Head::Bare => true,
            Head::EachToken { .. } => Some(index) != last,
            Head::Sample { .. } => false,
            Head::Language => pooler(index),
        });
        unread.filter_map(|(_, module)| module.own_parameters()).fold(0, u64::saturating_add)
    }

    /// Whether attention scores are materialised: by the class that computes them, else by the release that
    /// prints such a tree.
    fn eager(&self, assumed: &mut Vec<String>) -> bool {
        let class = self.layer.iter().map(|module| module.kind);
        let mut attention = class.filter(|kind| kind.contains("Attention"));
        if attention.clone().any(|kind| kind.contains("Sdpa") || kind.contains("Flash")) {
            return false;
        }
        let class = attention.next_back().unwrap_or("attention");
        let (done, why) = match self.one_class() {
            Some(sign) => ("stream", sign),
            None => ("keep", "newer libraries use this name whether or not they do"),
        };
        assumed.push(format!("{class} is taken to {done} its scores; {why}"));
        self.one_class().is_none()
    }

    /// A sign of releases with one class for both ways to compute attention, which stream unless told otherwise.
    fn one_class(&self) -> Option<&'static str> {
        let turns = |module: &Module<'_>| module.kind.contains("Rotary");
        let named =
            |module: &Module<'_>| module.kind == "LayerNorm" && module.arguments.contains("bias=");
        if self.layer.iter().any(|module| module.name == "gate_proj") {
            // Since transformers 4.48.
            let none = !self.layer.iter().any(turns);
            return none.then_some("its release does so by default, as layers without rotary positions of their own show");
        }
        // PyTorch 2.15 prints it, releases of 2024 did not; transformers 5, with one class for both ways, lies between.
        self.layer
            .iter()
            .any(named)
            .then_some("its release most likely does so by default, as a LayerNorm printed with its bias shows")
    }

    fn encoder(&self, assumed: &mut Vec<String>) -> Option<Encoder> {
        let products = self.products();
        let (width, _) = *products.first()?;
        let &(_, hidden) = products.get(products.len().checked_sub(2)?)?;
        let (head, pooled) = self.head();
        let named = |module: &Module<'_>| Activation::from_name(module.kind);
        Some(Encoder {
            width,
            embedding: self.embedding,
            layers: self.layers,
            hidden,
            function: self.layer.iter().find_map(named).unwrap_or(Activation::GELU),
            heads: (width / HEAD_WIDTH).max(1),
            vocabulary: self.vocabulary,
            placed: self.placed(),
            head,
            pooled,
            tied: true,
            eager: self.eager(assumed),
        })
    }

    fn gpt2(&self, assumed: &mut Vec<String>) -> Option<Gpt2> {
        let width = self.embedding;
        let wide = self.layer.iter().find(|module| module.name == "c_fc")?;
        // Older libraries print the product's count alone: a row of weights and a bias for each feature.
        let counted = |count: u64| u32::try_from(count / (u64::from(width) + 1)).ok();
        let hidden = match (wide.product(), wide.parameters.and_then(counted)) {
            (Some((_, hidden)), _) => hidden,
            (None, Some(hidden)) => hidden,
            (None, None) => {
                assumed.push("c_fc is taken to be four times as wide as the model".to_owned());
                4 * width
            }
        };
        let (head, _) = self.head();
        Some(Gpt2 {
            width,
            layers: self.layers,
            hidden: Some(hidden).filter(|hidden| (1..=1 << 24).contains(hidden))?,
            heads: (width / HEAD_WIDTH).max(1),
            vocabulary: self.vocabulary,
            positions: self.placed(),
            head,
            tied: true,
            eager: self.eager(assumed),
        })
    }

    fn llama(&self, assumed: &mut Vec<String>) -> Option<Llama> {
        let ((width, queries), (_, keys)) = (self.named("q_proj")?, self.named("k_proj")?);
        let (_, hidden) = self.named("gate_proj")?;
        let divides = |each: &u32| queries.is_multiple_of(*each) && keys.is_multiple_of(*each);
        let each = [WIDE_HEAD, HEAD_WIDTH].into_iter().find(divides).unwrap_or(1);
        assumed.push(format!(
            "heads are taken to be {each} features wide, and the head's weight its own"
        ));
        let (head, _) = self.head();
        Some(Llama {
            width,
            layers: self.layers,
            hidden,
            heads: queries / each,
            key_heads: keys / each,
            head_width: each,
            vocabulary: self.vocabulary,
            head,
            tied: false,
            eager: self.eager(assumed),
        })
    }

    fn xlnet(&self) -> Option<XlNet> {
        let (width, hidden) = self.named("layer_1")?;
        Some(XlNet { width, layers: self.layers, hidden, vocabulary: self.vocabulary })
    }
}
