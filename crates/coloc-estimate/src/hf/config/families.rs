//! What the fields of each family mean.

use super::super::t5::T5;
use super::super::{AttentionChoice, Chance, Encoder, Gpt2, Head, Llama, Options, Projection, Vit};
use super::fields::Fields;
use super::{ConfigError, ConfigFault, FieldProblem};
use crate::graph::{Activation, FlagKind, Graph};

/// Labels of a classifier where the config does not say.
const USUAL_LABELS: u32 = 2;

/// Rows of T5's table of relative positions where the config does not say.
const USUAL_BUCKETS: u32 = 32;

/// What a config says beside sizes, and what had to be assumed.
struct Model<'a> {
    fields: &'a Fields<'a>,
    class: Option<&'a str>,
    head: Head,
    eager: bool,
    assumed: Vec<String>,
}

/// A model's graph and, where it has a table of them, how many positions it knows.
pub(super) fn graph(
    family: &str,
    fields: &Fields<'_>,
    options: &Options,
) -> Result<(Graph, Option<u32>), ConfigError> {
    let mut model = Model::read(family, fields, options)?;
    let (mut graph, positions) = match family {
        "bert" | "roberta" | "xlm-roberta" | "camembert" | "electra" => {
            let rows = fields.number("max_position_embeddings")?;
            // The RoBERTas count positions from behind the padding's number.
            let offset = if matches!(family, "bert" | "electra") { 0 } else { 2 };
            (model.bert(rows)?.graph(options), Some(rows.saturating_sub(offset)))
        }
        "distilbert" => {
            let positions = fields.number("max_position_embeddings")?;
            (model.distilbert(positions)?.graph(options), Some(positions))
        }
        "gpt2" => {
            let positions = fields.number("n_positions")?;
            (model.gpt2(positions)?.graph(options), Some(positions))
        }
        "llama" | "mistral" | "qwen2" => {
            (model.llama()?.graph(options), fields.optional("max_position_embeddings")?)
        }
        "t5" | "mt5" => (model.t5()?.graph(options), None),
        "vit" | "deit" => (model.vit(family)?.graph(options), None),
        "albert" => {
            let fault = ConfigFault::SharedLayers(family.to_owned());
            return Err(fields.fault("model_type", fault));
        }
        _ => return Err(fields.fault("model_type", ConfigFault::Family(family.to_owned()))),
    };
    for assumption in model.assumed {
        graph.flag(FlagKind::Assumption, assumption);
    }
    Ok((graph, positions))
}

impl<'a> Model<'a> {
    fn read(family: &str, fields: &'a Fields<'a>, options: &Options) -> Result<Self, ConfigError> {
        let mut assumed = Vec::new();
        let class = fields.first_word("architectures")?;
        let named = fields.get("id2label").and_then(|labels| labels.as_object());
        let labels = match (fields.optional("num_labels")?, named) {
            (Some(labels), _) => labels,
            (None, Some(names)) => (names.len() as u32).max(1),
            (None, None) => USUAL_LABELS,
        };
        let head = class.and_then(|class| Head::of_class(class, labels)).unwrap_or_else(|| {
            let said = match class {
                Some(class) => format!("the head of {class} is not known"),
                None => "the config names no architecture".to_owned(),
            };
            let (what, head) = match family {
                "vit" | "deit" => ("a classifier of images", Head::Sample { labels }),
                _ => ("a language model, which needs most", Head::Language),
            };
            assumed.push(format!("{said}; taken to be {what}"));
            head
        });
        let eager = attention(family, fields, options, &mut assumed)?;
        Ok(Model { fields, class, head, eager, assumed })
    }

    fn bert(&mut self, positions: u32) -> Result<Encoder, ConfigError> {
        let fields = self.fields;
        let width = fields.number("hidden_size")?;
        let types = fields.optional("type_vocab_size")?.unwrap_or(2);
        Ok(Encoder {
            width,
            embedding: fields.optional("embedding_size")?.unwrap_or(width),
            layers: fields.count("num_hidden_layers")?,
            hidden: fields.number("intermediate_size")?,
            function: self.function("hidden_act")?,
            heads: fields.heads(width, "num_attention_heads")?,
            vocabulary: fields.number("vocab_size")?,
            placed: positions + types,
            head: self.head,
            pooled: true,
            tied: fields.truth("tie_word_embeddings", true)?,
            eager: self.eager,
        })
    }

    fn distilbert(&mut self, positions: u32) -> Result<Encoder, ConfigError> {
        let fields = self.fields;
        let width = fields.number("dim")?;
        Ok(Encoder {
            width,
            embedding: width,
            layers: fields.count("n_layers")?,
            hidden: fields.number("hidden_dim")?,
            function: self.function("activation")?,
            heads: fields.heads(width, "n_heads")?,
            vocabulary: fields.number("vocab_size")?,
            placed: positions,
            head: self.head,
            pooled: true,
            tied: fields.truth("tie_word_embeddings", true)?,
            eager: self.eager,
        })
    }

    fn gpt2(&self, positions: u32) -> Result<Gpt2, ConfigError> {
        let fields = self.fields;
        let width = fields.number("n_embd")?;
        Ok(Gpt2 {
            width,
            layers: fields.count("n_layer")?,
            hidden: fields.optional("n_inner")?.unwrap_or(4 * width),
            heads: fields.heads(width, "n_head")?,
            vocabulary: fields.number("vocab_size")?,
            positions,
            head: self.head,
            tied: fields.truth("tie_word_embeddings", true)?,
            eager: self.eager,
        })
    }

    fn llama(&self) -> Result<Llama, ConfigError> {
        let fields = self.fields;
        let width = fields.number("hidden_size")?;
        let heads = fields.number("num_attention_heads")?;
        let key_heads = fields.optional("num_key_value_heads")?.unwrap_or(heads);
        if !heads.is_multiple_of(key_heads) {
            return Err(fields.error("num_key_value_heads", FieldProblem::KeyHeads));
        }
        let each = match fields.optional("head_dim")? {
            Some(each) => fields.head_width(heads, each, "head_dim")?,
            None => width / fields.heads(width, "num_attention_heads")?,
        };
        Ok(Llama {
            width,
            layers: fields.count("num_hidden_layers")?,
            hidden: fields.number("intermediate_size")?,
            heads,
            key_heads,
            head_width: each,
            vocabulary: fields.number("vocab_size")?,
            head: self.head,
            tied: fields.truth("tie_word_embeddings", false)?,
            eager: self.eager,
        })
    }

    fn t5(&self) -> Result<T5, ConfigError> {
        let fields = self.fields;
        let layers = fields.count("num_layers")?;
        let decoder_layers = fields.optional_count("num_decoder_layers")?.unwrap_or(layers);
        let alone = |class: &str| {
            class.ends_with("EncoderModel") || class.ends_with("ForTokenClassification")
        };
        let heads = fields.number("num_heads")?;
        let projection = fields.word("feed_forward_proj")?.unwrap_or("relu");
        Ok(T5 {
            width: fields.number("d_model")?,
            layers,
            decoder_layers: (!self.class.is_some_and(alone)).then_some(decoder_layers),
            hidden: fields.number("d_ff")?,
            heads,
            head_width: fields.head_width(heads, fields.number("d_kv")?, "d_kv")?,
            buckets: fields.optional("relative_attention_num_buckets")?.unwrap_or(USUAL_BUCKETS),
            vocabulary: fields.number("vocab_size")?,
            gated: projection.starts_with("gated"),
            head: self.head,
            tied: fields.truth("tie_word_embeddings", true)?,
            eager: self.eager,
        })
    }

    fn vit(&mut self, family: &str) -> Result<Vit, ConfigError> {
        let fields = self.fields;
        let width = fields.number("hidden_size")?;
        let (image, patch) = (fields.number("image_size")?, fields.number("patch_size")?);
        if patch > image {
            return Err(fields.error("patch_size", FieldProblem::Patch));
        }
        let distilled = family == "deit";
        let both = self.class.is_some_and(|class| class.ends_with("WithTeacher"));
        Ok(Vit {
            channels: fields.optional("num_channels")?.unwrap_or(3),
            grid: (image / patch, image / patch),
            patch,
            width,
            layers: fields.count("num_hidden_layers")?,
            hidden: fields.number("intermediate_size")?,
            function: self.function("hidden_act")?,
            heads: fields.heads(width, "num_attention_heads")?,
            extra: if distilled { 2 } else { 1 },
            projection: Projection::Apart,
            biased: fields.truth("qkv_bias", true)?,
            chance: Chance {
                dropout: fields.drops("hidden_dropout_prob")?,
                attention_dropout: fields.drops("attention_probs_dropout_prob")?,
                drop_path: false,
            },
            head: self.head,
            classifiers: if both { 2 } else { 1 },
            mean: false,
            eager: self.eager,
        })
    }

    /// The function between an encoder's two wide products.
    fn function(&mut self, field: &'static str) -> Result<Activation, ConfigError> {
        let Some(name) = self.fields.word(field)? else { return Ok(Activation::GELU) };
        Ok(Activation::from_name(name).unwrap_or_else(|| {
            self.assumed.push(format!("{field} {name:?} is not known; taken to be gelu"));
            Activation::GELU
        }))
    }
}

/// Whether attention scores are materialised: as the options say, else the config, else as the family does.
fn attention(
    family: &str,
    fields: &Fields<'_>,
    options: &Options,
    assumed: &mut Vec<String>,
) -> Result<bool, ConfigError> {
    let mut configured = AttentionChoice::AsConfigured;
    for field in ["_attn_implementation", "attn_implementation"] {
        if let Some(word) = fields.word(field)? {
            let known = word.parse();
            configured = known.map_err(|_| fields.error(field, FieldProblem::Attention))?;
        }
    }
    let t5 = matches!(family, "t5" | "mt5");
    Ok(match (options.attention, configured) {
        (AttentionChoice::Eager, _) => true,
        (AttentionChoice::Sdpa, _) => {
            if t5 {
                assumed.push("sdpa was asked for, though T5 usually computes eagerly".to_owned());
            }
            false
        }
        (AttentionChoice::AsConfigured, AttentionChoice::Sdpa) if t5 => {
            assumed.push("the config says sdpa, but T5 computes attention eagerly".to_owned());
            true
        }
        (AttentionChoice::AsConfigured, AttentionChoice::AsConfigured) if family == "electra" => {
            let version = fields.word("transformers_version")?.unwrap_or_default();
            let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
            // One class for both ways, which streams unless told otherwise.
            let streams = major.is_some_and(|major| major >= 5);
            let (way, why) = match streams {
                true => ("streams scores", "does since release 5, which wrote the config"),
                false => ("computes attention eagerly", "did before release 5"),
            };
            assumed.push(format!("ELECTRA {way}, as transformers {why}"));
            !streams
        }
        (AttentionChoice::AsConfigured, AttentionChoice::AsConfigured) => t5,
        (AttentionChoice::AsConfigured, configured) => configured == AttentionChoice::Eager,
    })
}
