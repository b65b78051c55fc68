use super::*;
use crate::graph::{FlagKind, Graph, Op, Shape};
use crate::hf::AttentionChoice;

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
fn a_bad_config_says_what_is_wrong_and_where() {
    for (text, line, column, said) in [
        ("", 1, 1, "the file is empty"),
        ("\u{feff}\n", 1, 1, "the file is empty"),
        ("{", 1, 1, "not JSON: EOF while parsing an object"),
        ("[]", 1, 1, "an object in braces"),
        ("{}", 1, 1, "\"model_type\" is missing; known are bert"),
        ("{\n \"model_type\": 3}", 2, 2, "is not a word in quotes"),
        ("{\"model_type\":\"bart\"}", 1, 2, "\"bart\" is not known; known are bert, camembert"),
        ("{\"model_type\":\"albert\"}", 1, 2, "shares one layer's weights"),
        ("{\"model_type\":\"gpt2\"}", 1, 1, "\"n_positions\" is missing"),
        ("{\"model_type\":\"gpt2\",\n\"n_positions\":9,\n  \"n_embd\" : 0}", 3, 3, "\"n_embd\""),
        ("{\"model_type\":\"t5\",\"architectures\":\"T5\"}", 1, 20, "list of words"),
        (
            "{\"model_type\":\"t5\",\"attn_implementation\":\"fast\"}",
            1,
            20,
            "none of config, eager",
        ),
    ] {
        let error = parse(text, &Options::default()).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        let told = error.to_string();
        assert!(told.contains(said), "{text}: {told}");
        assert_eq!(told.matches("line").count(), 1, "{told}");
    }
}

fn with(text: &str, more: &str) -> String {
    let open = text.strip_suffix('}').unwrap();
    format!("{open},{more}}}")
}

const BERT: &str = r#"{"model_type":"bert","hidden_size":768,"num_hidden_layers":12,"intermediate_size":3072,
    "num_attention_heads":12,"vocab_size":30522,"max_position_embeddings":512}"#;
const T5: &str = r#"{"model_type":"t5","d_model":512,"num_layers":6,"d_ff":2048,"num_heads":8,"d_kv":64,
    "vocab_size":32128}"#;

#[test]
fn the_head_is_the_one_that_the_architecture_names() {
    let body = 85_054_464 + (30_522 + 512 + 2) * 768 + 1536;
    let dense = 768 * 769;
    for (more, head) in [
        (r#""architectures":["BertForMaskedLM"]"#, dense + 1536),
        (r#""architectures":["BertForSequenceClassification"]"#, dense + 2 * 769),
        (
            r#""architectures":["BertForTokenClassification"],"id2label":{"0":"a","1":"b","2":"c"}"#,
            3 * 769,
        ),
        (r#""architectures":["BertForQuestionAnswering"],"num_labels":5"#, 2 * 769),
        (r#""architectures":["BertModel"]"#, 0),
        (
            r#""architectures":["BertForMaskedLM"],"tie_word_embeddings":false"#,
            dense + 1536 + 30_522 * 768,
        ),
    ] {
        let graph = parse(&with(BERT, more), &Options::default()).unwrap();
        assert_eq!(graph.parameters(), body + head, "{more}");
    }
    let assumed = |text: &str| {
        let graph = parse(text, &Options::default()).unwrap();
        graph.flags.iter().any(|flag| flag.kind == FlagKind::Assumption)
    };
    assert!(assumed(BERT) && assumed(&with(BERT, r#""architectures":["BertForFun"]"#)));
    assert!(!assumed(&with(BERT, r#""architectures":["BertForMaskedLM"]"#)));
    let untied = with(T5, r#""tie_word_embeddings":false"#);
    let numbers = |text: &str| parse(text, &Options::default()).unwrap().parameters();
    assert_eq!(numbers(&untied) - numbers(T5), 512 * 32_128);
    assert!(parse(&with(T5, r#""tie_word_embeddings":"yes""#), &Options::default()).is_err());
    let encoder = with(T5, r#""architectures":["T5EncoderModel"]"#);
    assert!(2 * numbers(&encoder) < numbers(&untied));
}

#[test]
fn the_kin_of_bert_have_their_published_sizes() {
    for (text, parameters) in [
        (
            r#"{"model_type":"distilbert","dim":768,"n_layers":6,"n_heads":12,"hidden_dim":3072,
                "vocab_size":30522,"max_position_embeddings":512,"architectures":["DistilBertForMaskedLM"]}"#,
            66.95e6,
        ),
        (
            r#"{"model_type":"electra","hidden_size":256,"embedding_size":128,"num_hidden_layers":12,
                "intermediate_size":1024,"num_attention_heads":4,"vocab_size":30522,
                "max_position_embeddings":512,"architectures":["ElectraForPreTraining"]}"#,
            13.5e6,
        ),
        (
            r#"{"model_type":"xlm-roberta","hidden_size":768,"num_hidden_layers":12,"intermediate_size":3072,
                "num_attention_heads":12,"vocab_size":250002,"max_position_embeddings":514,
                "type_vocab_size":1,"architectures":["XLMRobertaForMaskedLM"]}"#,
            278.3e6,
        ),
    ] {
        let graph = parse(text, &Options::default()).unwrap();
        let found = graph.parameters() as f64;
        assert!((found / parameters - 1.0).abs() < 0.01, "{found} for {text}");
        assert!(!graph.flags.iter().any(|flag| flag.kind == FlagKind::SummaryMismatch));
    }
}

#[test]
fn attention_is_computed_as_said_or_as_the_family_does() {
    let eager = |text: &str, attention| {
        let graph = parse(text, &Options { attention, ..Options::default() }).unwrap();
        graph.nodes().iter().any(|node| matches!(node.op, Op::Attention(way) if way.eager))
    };
    let [configured, forced, streamed] =
        ["config", "eager", "sdpa"].map(|word| word.parse::<AttentionChoice>().unwrap());
    assert!("quick".parse::<AttentionChoice>().is_err());
    assert!(!eager(BERT, configured) && eager(BERT, forced) && !eager(BERT, streamed));
    assert!(eager(T5, configured) && eager(T5, forced) && !eager(T5, streamed));
    let electra = BERT.replace("\"bert\"", "\"electra\"");
    for (version, kept) in
        [("4.57.1", true), ("5.0.0", false), ("5.23.0.dev0", false), ("new", true)]
    {
        let said = with(&electra, &format!(r#""transformers_version":"{version}""#));
        assert_eq!(eager(&said, configured), kept, "{version}");
    }
    assert!(eager(&electra, configured));
    for field in ["attn_implementation", "_attn_implementation"] {
        let said = with(BERT, &format!(r#""{field}":"eager""#));
        assert!(eager(&said, configured) && !eager(&said, streamed));
        assert!(
            eager(&with(T5, &format!(r#""{field}":"sdpa""#)), configured),
            "T5 has no other way"
        );
    }
}

#[test]
fn a_byte_order_mark_is_no_fault() {
    assert!(parse(&format!("\u{feff}{BERT}"), &Options::default()).is_ok());
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
    let numbers: u64 = trained.map(|node| node.op.parameters(node.shape).iter().sum::<u64>()).sum();
    // In each of four layers, beside a query of 512 and a value of 256 features.
    assert_eq!(numbers, 4 * (8 * (512 + 512) + 8 * (512 + 256)));
}

const VIT: &str = r#"{"model_type":"vit","hidden_size":768,"num_hidden_layers":12,"intermediate_size":3072,
    "num_attention_heads":12,"image_size":224,"patch_size":16,"num_channels":3,"num_labels":1000,
    "hidden_dropout_prob":0.0,"attention_probs_dropout_prob":0.0,"architectures":["ViTForImageClassification"]}"#;

#[test]
fn vision_transformers_have_their_published_sizes() {
    let numbers = |text: &str| parse(text, &Options::default()).unwrap().parameters();
    assert_eq!(numbers(VIT), 86_567_656);
    let deit = VIT.replace("\"vit\"", "\"deit\"").replace("ViTFor", "DeiTFor");
    assert_eq!(numbers(&deit), 86_569_192);
    let teacher = deit.replace("Classification\"", "ClassificationWithTeacher\"");
    assert_eq!(numbers(&teacher), 86_569_192 + 769_000);
    assert_eq!(numbers(&VIT.replace("ForImageClassification", "Model")), 86_567_656 - 769_000);
    assert_eq!(numbers(&with(VIT, r#""qkv_bias":false"#)), 86_567_656 - 12 * 3 * 768);
    let graph = parse(VIT, &Options::default()).unwrap();
    let kinds: Vec<FlagKind> = graph.flags.iter().map(|flag| flag.kind).collect();
    assert_eq!(kinds, [FlagKind::Unverified]);
}

#[test]
fn vision_configs_are_read_whole_or_refused() {
    let nodes = |text: &str| parse(text, &Options::default()).unwrap().nodes().len();
    let drops = VIT.replace("hidden_dropout_prob\":0.0", "hidden_dropout_prob\":0.1");
    assert_eq!(nodes(&drops), nodes(VIT) + 1 + 3 * 12);
    let unnamed = VIT.replace("ViTForImageClassification", "ViTForMaskedImageModeling");
    let graph = parse(&unnamed, &Options::default()).unwrap();
    assert!(graph.flags.iter().any(|flag| flag.detail.contains("a classifier of images")));
    for (from, to, said) in [
        ("\"patch_size\":16", "\"patch_size\":225", "\"patch_size\" is larger than image_size"),
        ("\"image_size\":224", "\"image_size\":[224, 224]", "\"image_size\" is not a number"),
        ("prob\":0.0", "prob\":1.5", "is not a number from 0 to 1"),
        ("\"patch_size\":16,", "", "\"patch_size\" is missing"),
    ] {
        let error = parse(&VIT.replace(from, to), &Options::default()).unwrap_err().to_string();
        assert!(error.contains(said), "{to}: {error}");
    }
    // The largest sizes that are read, though no device holds them.
    let large = VIT.replace("224", "16777216").replace("\"patch_size\":16", "\"patch_size\":1");
    parse(&large, &Options::default()).unwrap();
}

#[test]
fn vision_transformers_are_adapted_and_checkpointed() {
    let adapted = parse(VIT, &Options { lora_rank: Some(8), ..Options::default() }).unwrap();
    let trained = adapted.nodes().iter().filter(|node| !node.frozen);
    let numbers: u64 = trained.map(|node| node.op.parameters(node.shape).iter().sum::<u64>()).sum();
    assert_eq!(numbers, 12 * 2 * 8 * (768 + 768));
    let options = Options { checkpointing: true, ..Options::default() };
    assert_eq!(parse(VIT, &options).unwrap().checkpoints.len(), 12);
}

/// A table for each stack, and what is added to the scores of all layers of a stack.
#[test]
fn t5_adds_relative_positions() {
    let graph = |more: &str| parse(&with(T5, more), &Options::default()).unwrap();
    let usual = graph(r#""architectures":["T5ForConditionalGeneration"]"#);
    assert_eq!(usual.parameters(), 60_506_624, "as published");
    let wider = graph(r#""relative_attention_num_buckets":64"#);
    assert_eq!(wider.parameters() - usual.parameters(), 2 * 32 * 8);
    let scores = Shape::image(8, 512, 512);
    let added = |graph: &Graph| graph.nodes().iter().filter(|node| node.shape == scores).count();
    assert_eq!(added(&usual), 3, "in the encoder, in the decoder, between them");
    assert_eq!(added(&graph(r#""architectures":["T5EncoderModel"]"#)), 1);
    let read = usual.nodes().iter().filter(|node| matches!(node.op, Op::Attention(_)));
    assert_eq!(read.filter(|node| usual.inputs(node).len() == 4).count(), 3);
    let none = with(T5, r#""relative_attention_num_buckets":0"#);
    assert!(parse(&none, &Options::default()).is_err());
}
