//! How a Hugging Face model is fine-tuned.

/// What a `config.json` does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Tokens of a sample.
    pub tokens: u32,
    /// Layers are computed again in the backward pass instead of kept.
    pub checkpointing: bool,
    /// Rank of low-rank adapters beside each attention projection; the rest is frozen.
    pub lora_rank: Option<u32>,
    /// Attention scores are materialised.
    pub eager_attention: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { tokens: 512, checkpointing: false, lora_rank: None, eager_attention: false }
    }
}
