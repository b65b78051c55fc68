//! Transformers as Hugging Face builds them, from a `config.json` or by hand.

mod config;
mod decoder;
mod encoder;
mod head;
mod layers;
mod options;
mod t5;
mod vit;
mod xlnet;

pub use config::{ConfigError, parse};
pub use options::{AttentionChoice, Options};

pub(crate) use decoder::{Gpt2, Llama};
pub(crate) use encoder::Encoder;
pub(crate) use head::Head;
pub(crate) use vit::{Chance, Projection, Vit};
pub(crate) use xlnet::XlNet;

use crate::graph::{Activation, FlagKind, Graph};

/// Flags samples that are longer than the model's table of positions.
pub(crate) fn check_positions(graph: &mut Graph, positions: u32, tokens: u32) {
    if positions < tokens {
        let detail = format!(
            "a sample of {tokens} tokens is longer than the model's {positions} positions; give --seq"
        );
        graph.flag(FlagKind::SummaryMismatch, detail);
    }
}

/// Masked-language BERT with its cased vocabulary and the usual proportions, at 512 tokens.
pub fn bert(width: u32, layers: u32) -> Graph {
    let encoder = Encoder {
        width,
        embedding: width,
        layers,
        hidden: 4 * width,
        function: Activation::GELU,
        heads: (width / 64).max(1),
        vocabulary: 28_996,
        placed: 512 + 2,
        head: Head::Language,
        pooled: false,
        tied: true,
        eager: false,
    };
    encoder.graph(&Options::default())
}

/// GPT-2 with the usual proportions, at 512 tokens.
pub fn gpt2(width: u32, layers: u32) -> Graph {
    let gpt2 = Gpt2 {
        width,
        layers,
        hidden: 4 * width,
        heads: (width / 64).max(1),
        vocabulary: 50_257,
        positions: 1024,
        head: Head::Language,
        tied: true,
        eager: false,
    };
    gpt2.graph(&Options::default())
}

/// XLNet for classification with the usual proportions, at 512 tokens.
pub fn xlnet(width: u32, layers: u32) -> Graph {
    XlNet { width, layers, hidden: 4 * width, vocabulary: 32_000 }.graph(&Options::default())
}
