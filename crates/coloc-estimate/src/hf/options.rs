//! How a Hugging Face model is fine-tuned.

use crate::run::UnknownWord;
use std::str::FromStr;

/// What a `config.json` does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Tokens of a sample.
    pub tokens: u32,
    /// Layers are computed again in the backward pass instead of kept.
    pub checkpointing: bool,
    /// Rank of low-rank adapters beside each attention projection; the rest is frozen.
    pub lora_rank: Option<u32>,
    /// How attention is computed.
    pub attention: AttentionChoice,
}

impl Default for Options {
    fn default() -> Self {
        let attention = AttentionChoice::AsConfigured;
        Options { tokens: 512, checkpointing: false, lora_rank: None, attention }
    }
}

/// How attention is computed, as the libraries call it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AttentionChoice {
    /// As the config says, else as the family usually does.
    #[default]
    AsConfigured,
    /// The scores are materialised.
    Eager,
    /// The scores are streamed.
    Sdpa,
}

/// What may stand in a config or on the command line.
pub(super) const KNOWN_ATTENTION: &str =
    "config, eager, sdpa, flash_attention_2, flash_attention_3, flex_attention";

impl FromStr for AttentionChoice {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "config" => Self::AsConfigured,
            "eager" => Self::Eager,
            "sdpa" | "flash_attention_2" | "flash_attention_3" | "flex_attention" => Self::Sdpa,
            _ => return Err(UnknownWord::new("attention", text, KNOWN_ATTENTION)),
        })
    }
}
