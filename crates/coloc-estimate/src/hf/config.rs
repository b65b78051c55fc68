//! Reads a `config.json`.

use super::{Llama, Options, Sizes, T5};
use crate::graph::Graph;
use serde_json::{Map, Value};

/// The file does not describe a model of a known family.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not JSON.
    #[error("line {line}, column {column}: not JSON: {problem}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser says.
        problem: String,
    },
    /// Not an object.
    #[error("line 1, column 1: a config.json is an object in braces")]
    NotAnObject,
    /// Another family.
    #[error("model_type {0:?} is not known; known are bert, gpt2, llama, mistral, qwen2 and t5")]
    Family(String),
    /// A field is missing or makes no sense.
    #[error("field {field:?} {problem}")]
    Field {
        /// Which.
        field: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
}

/// The graph of a model.
pub fn parse(text: &str, options: &Options) -> Result<Graph, ConfigError> {
    let value: Value = serde_json::from_str(text).map_err(|error| ConfigError::Json {
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
    })?;
    let fields = Fields(value.as_object().ok_or(ConfigError::NotAnObject)?);
    let family = fields.0.get("model_type").and_then(Value::as_str).unwrap_or_default();
    match family {
        "bert" | "roberta" | "electra" => Ok(bert(&fields)?.bert(options)),
        "gpt2" => Ok(gpt2(&fields)?.gpt2(options)),
        "llama" | "mistral" | "qwen2" => Ok(llama(&fields)?.graph(options)),
        "t5" | "mt5" => Ok(t5(&fields)?.graph(options)),
        other => Err(ConfigError::Family(other.to_owned())),
    }
}

fn bert(fields: &Fields<'_>) -> Result<Sizes, ConfigError> {
    Ok(Sizes {
        width: fields.number("hidden_size")?,
        layers: fields.count("num_hidden_layers")?,
        hidden: fields.number("intermediate_size")?,
        heads: fields.number("num_attention_heads")?,
        vocabulary: fields.number("vocab_size")?,
        positions: fields.number("max_position_embeddings")?,
    })
}

fn gpt2(fields: &Fields<'_>) -> Result<Sizes, ConfigError> {
    let width = fields.number("n_embd")?;
    Ok(Sizes {
        width,
        layers: fields.count("n_layer")?,
        hidden: fields.optional("n_inner")?.unwrap_or(4 * width),
        heads: fields.number("n_head")?,
        vocabulary: fields.number("vocab_size")?,
        positions: fields.number("n_positions")?,
    })
}

fn llama(fields: &Fields<'_>) -> Result<Llama, ConfigError> {
    let width = fields.number("hidden_size")?;
    let heads = fields.number("num_attention_heads")?;
    Ok(Llama {
        width,
        layers: fields.count("num_hidden_layers")?,
        hidden: fields.number("intermediate_size")?,
        heads,
        key_heads: fields.optional("num_key_value_heads")?.unwrap_or(heads),
        head_width: fields.optional("head_dim")?.unwrap_or((width / heads).max(1)),
        vocabulary: fields.number("vocab_size")?,
        tied: fields.0.get("tie_word_embeddings").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn t5(fields: &Fields<'_>) -> Result<T5, ConfigError> {
    let layers = fields.count("num_layers")?;
    let projection = fields.0.get("feed_forward_proj").and_then(Value::as_str).unwrap_or("relu");
    Ok(T5 {
        width: fields.number("d_model")?,
        layers,
        decoder_layers: fields.optional("num_decoder_layers")?.unwrap_or(layers),
        hidden: fields.number("d_ff")?,
        heads: fields.number("num_heads")?,
        head_width: fields.number("d_kv")?,
        vocabulary: fields.number("vocab_size")?,
        gated: projection.starts_with("gated"),
    })
}

struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn optional(&self, field: &'static str) -> Result<Option<u32>, ConfigError> {
        let Some(value) = self.0.get(field).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let number = value.as_u64().filter(|number| (1..=1 << 24).contains(number));
        match number {
            Some(number) => Ok(Some(number as u32)),
            None => {
                Err(ConfigError::Field { field, problem: "is not a number from 1 to 16777216" })
            }
        }
    }

    fn number(&self, field: &'static str) -> Result<u32, ConfigError> {
        self.optional(field)?.ok_or(ConfigError::Field { field, problem: "is missing" })
    }

    /// A number of layers.
    fn count(&self, field: &'static str) -> Result<u32, ConfigError> {
        let count = self.number(field)?;
        let problem = "says more layers than any model has (10000)";
        if count <= 10_000 { Ok(count) } else { Err(ConfigError::Field { field, problem }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_families_have_their_published_sizes() {
        let cases = [
            (
                r#"{"model_type":"bert","hidden_size":768,"num_hidden_layers":12,"intermediate_size":3072,
                    "num_attention_heads":12,"vocab_size":30522,"max_position_embeddings":512}"#,
                109.5e6,
            ),
            (
                r#"{"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"vocab_size":50257,
                    "n_positions":1024}"#,
                124.4e6,
            ),
            (
                r#"{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,
                    "intermediate_size":11008,"num_attention_heads":32,"vocab_size":32000}"#,
                6738.0e6,
            ),
            (
                r#"{"model_type":"t5","d_model":768,"num_layers":12,"d_ff":3072,"num_heads":12,
                    "d_kv":64,"vocab_size":32128}"#,
                222.9e6,
            ),
        ];
        for (text, parameters) in cases {
            let found = parse(text, &Options::default()).unwrap().parameters() as f64;
            assert!((found / parameters - 1.0).abs() < 0.01, "{found} for {text}");
        }
    }

    #[test]
    fn a_bad_config_says_what_is_missing() {
        let options = Options::default();
        let family = parse(r#"{"model_type":"bart"}"#, &options).unwrap_err();
        assert!(family.to_string().contains("bart"));
        let field = parse(r#"{"model_type":"gpt2","n_embd":0}"#, &options).unwrap_err();
        assert!(field.to_string().contains("n_embd"));
        assert!(matches!(parse("{", &options), Err(ConfigError::Json { line: 1, .. })));
        assert_eq!(parse("[]", &options), Err(ConfigError::NotAnObject));
    }
}
