//! Reads a `config.json`.

use super::{Llama, Options, Sizes, T5};
use crate::graph::{FlagKind, Graph};
use serde_json::{Map, Value};

/// No layer is wider, no table longer.
const WIDEST: u64 = 1 << 24;

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
    let value: Value = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    let fields = Fields(value.as_object().ok_or(ConfigError::NotAnObject)?);
    let family = fields.0.get("model_type").and_then(Value::as_str).unwrap_or_default();
    let mut graph = match family {
        "bert" | "roberta" | "electra" => bert(&fields)?.bert(options),
        "gpt2" => gpt2(&fields)?.gpt2(options),
        "llama" | "mistral" | "qwen2" => llama(&fields)?.graph(options),
        "t5" | "mt5" => t5(&fields)?.graph(options),
        other => return Err(ConfigError::Family(other.to_owned())),
    };
    let field = if family == "gpt2" { "n_positions" } else { "max_position_embeddings" };
    if let Some(positions) = fields.optional(field)?.filter(|most| *most < options.tokens) {
        let detail = format!(
            "a sample of {} tokens is longer than the model's {positions} positions; give --seq",
            options.tokens
        );
        graph.flag(FlagKind::SummaryMismatch, detail);
    }
    Ok(graph)
}

/// The place is said once, and an empty text ends in its first column.
fn json_error(error: &serde_json::Error) -> ConfigError {
    let said = error.to_string();
    let problem = said.rsplit_once(" at line ").map_or(said.as_str(), |(problem, _)| problem);
    let (line, column) = (error.line().max(1), error.column().max(1));
    ConfigError::Json { line, column, problem: problem.to_owned() }
}

/// A width that its heads divide.
fn divided(width: u32, heads: u32, field: &'static str) -> Result<u32, ConfigError> {
    let problem = "does not divide the model's width";
    if width.is_multiple_of(heads) { Ok(heads) } else { Err(ConfigError::Field { field, problem }) }
}

/// The width of one head, if all of them together are no wider than a layer can be.
fn head_width(heads: u32, each: u32, field: &'static str) -> Result<u32, ConfigError> {
    let problem = "makes the heads together wider than any layer (16777216)";
    let fits = u64::from(heads) * u64::from(each) <= WIDEST;
    if fits { Ok(each) } else { Err(ConfigError::Field { field, problem }) }
}

fn bert(fields: &Fields<'_>) -> Result<Sizes, ConfigError> {
    let width = fields.number("hidden_size")?;
    let heads = fields.number("num_attention_heads")?;
    Ok(Sizes {
        width,
        layers: fields.count("num_hidden_layers")?,
        hidden: fields.number("intermediate_size")?,
        heads: divided(width, heads, "num_attention_heads")?,
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
        heads: divided(width, fields.number("n_head")?, "n_head")?,
        vocabulary: fields.number("vocab_size")?,
        positions: fields.number("n_positions")?,
    })
}

fn llama(fields: &Fields<'_>) -> Result<Llama, ConfigError> {
    let width = fields.number("hidden_size")?;
    let heads = fields.number("num_attention_heads")?;
    let key_heads = fields.optional("num_key_value_heads")?.unwrap_or(heads);
    if !heads.is_multiple_of(key_heads) {
        let problem = "does not divide num_attention_heads: each is shared by as many query heads";
        return Err(ConfigError::Field { field: "num_key_value_heads", problem });
    }
    let each = match fields.optional("head_dim")? {
        Some(each) => head_width(heads, each, "head_dim")?,
        None => width / divided(width, heads, "num_attention_heads")?,
    };
    Ok(Llama {
        width,
        layers: fields.count("num_hidden_layers")?,
        hidden: fields.number("intermediate_size")?,
        heads,
        key_heads,
        head_width: each,
        vocabulary: fields.number("vocab_size")?,
        tied: fields.0.get("tie_word_embeddings").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn t5(fields: &Fields<'_>) -> Result<T5, ConfigError> {
    let layers = fields.count("num_layers")?;
    let heads = fields.number("num_heads")?;
    let projection = fields.0.get("feed_forward_proj").and_then(Value::as_str).unwrap_or("relu");
    Ok(T5 {
        width: fields.number("d_model")?,
        layers,
        decoder_layers: fields.optional_count("num_decoder_layers")?.unwrap_or(layers),
        hidden: fields.number("d_ff")?,
        heads,
        head_width: head_width(heads, fields.number("d_kv")?, "d_kv")?,
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
        let number = value.as_u64().filter(|number| (1..=WIDEST).contains(number));
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
        self.optional_count(field)?.ok_or(ConfigError::Field { field, problem: "is missing" })
    }

    fn optional_count(&self, field: &'static str) -> Result<Option<u32>, ConfigError> {
        let problem = "says more layers than any model has (10000)";
        match self.optional(field)? {
            Some(count) if count > 10_000 => Err(ConfigError::Field { field, problem }),
            count => Ok(count),
        }
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
        let broken = parse("{", &options).unwrap_err().to_string();
        assert_eq!(broken, "line 1, column 1: not JSON: EOF while parsing an object");
        assert!(matches!(parse("", &options), Err(ConfigError::Json { line: 1, column: 1, .. })));
        assert_eq!(parse("[]", &options), Err(ConfigError::NotAnObject));
    }

    const LLAMA: &str = r#"{"model_type":"llama","hidden_size":512,"num_hidden_layers":4,"intermediate_size":1024,
        "num_attention_heads":8,"num_key_value_heads":4,"vocab_size":1000,"max_position_embeddings":1024}"#;

    #[test]
    fn configs_that_make_no_sense_are_refused_or_flagged() {
        let options = Options::default();
        for (from, to, field) in [
            ("_heads\":8", "_heads\":7", "num_key_value_heads"),
            ("value_heads\":4", "value_heads\":16", "num_key_value_heads"),
            ("\"hidden_size\":512", "\"hidden_size\":500", "num_attention_heads"),
            ("\"hidden_size\":512", "\"hidden_size\":512,\"head_dim\":16777216", "head_dim"),
        ] {
            let text = LLAMA.replace(from, to);
            assert_ne!(text, LLAMA);
            let error = parse(&text, &options).unwrap_err().to_string();
            assert!(error.contains(field), "{text}: {error}");
        }
        let flags = |tokens| {
            let graph = parse(LLAMA, &Options { tokens, ..options }).unwrap();
            graph.flags.iter().filter(|flag| flag.kind == FlagKind::SummaryMismatch).count()
        };
        assert_eq!((flags(1024), flags(1025)), (0, 1));
    }

    #[test]
    fn adapters_are_all_that_lora_trains() {
        let adapted = parse(LLAMA, &Options { lora_rank: Some(8), ..Options::default() }).unwrap();
        let trained = adapted.nodes().iter().filter(|node| !node.frozen);
        let numbers: u64 =
            trained.map(|node| node.op.parameters(node.shape).iter().sum::<u64>()).sum();
        // In each of four layers, beside a query of 512 and a value of 256 features.
        assert_eq!(numbers, 4 * (8 * (512 + 512) + 8 * (512 + 256)));
    }
}
