//! `coloc estimate`: what it refuses, what it flags, and what a device's memory changes.

mod support;

use serde_json::Value;
use support::{Workspace, coloc};

const GPT2: &str = r#"{"model_type":"gpt2","n_embd":256,"n_layer":4,"n_head":4,"vocab_size":1000,"n_positions":1024}"#;
const NET: &str = "input 3x32x32\nconv 16 k3 p1\nrelu\ngap\nlinear 10\n";
const FILES: [(&str, &str); 2] = [("gpt2.json", GPT2), ("net.graph", NET)];

fn refused(flags: &[&str]) -> String {
    let dir = Workspace::with(&FILES);
    coloc(dir.path(), &[&["estimate"], flags].concat()).fails_with(2)
}

fn answer(flags: &[&str]) -> Value {
    let dir = Workspace::with(&FILES);
    let text = coloc(dir.path(), &[&["estimate", "--json"], flags].concat()).ok();
    serde_json::from_str(&text).expect("an answer in JSON")
}

fn flags_of(answer: &Value) -> String {
    answer["flags"].to_string()
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    for (flags, said) in [
        (&["--graph", "net.graph", "--lora", "8"][..], "--lora works with --hf-config"),
        (&["--task", "vgg", "--gradient-checkpointing"], "--gradient-checkpointing works with"),
        (&["--graph", "net.graph", "--seq", "128"], "--seq works with"),
        (&["--task", "BERT_base", "--seq", "128"], "--seq works with"),
        (&["--hf-config", "gpt2.json", "--zero", "2"], "give --gpus"),
        (&["--task", "vgg", "--device-memory", "0"], "a device has some memory"),
    ] {
        let message = refused(flags);
        assert!(message.contains(said), "{flags:?}: {message}");
    }
}

#[test]
fn what_was_assumed_or_never_measured_is_flagged() {
    let gpt2 = ["--hf-config", "gpt2.json"];
    assert!(flags_of(&answer(&gpt2)).contains("the batch is taken to be 8"));
    let told = answer(&[&gpt2[..], &["--batch", "8"]].concat());
    assert!(!flags_of(&told).contains("batch"), "{told}");
    assert!(flags_of(&answer(&["--graph", "net.graph"])).contains("the batch is taken to be 32"));
    for precision in ["bf16", "fp16", "mixed"] {
        let flags = flags_of(&answer(&["--task", "vgg", "--precision", precision]));
        assert!(flags.contains("unverified"), "{precision}: {flags}");
    }
    let long = answer(&[&gpt2[..], &["--batch", "1", "--seq", "2048"]].concat());
    assert!(flags_of(&long).contains("longer than the model's 1024 positions"), "{long}");
}

#[test]
fn a_small_device_changes_the_verdict_and_not_the_need() {
    let free = answer(&["--task", "vgg3"]);
    assert!(free["fits"].is_null());
    for (memory, fits, surely) in
        [("80G", true, true), ("28G", true, false), ("20G", true, false), ("4G", false, false)]
    {
        let on = answer(&["--task", "vgg3", "--device-memory", memory]);
        assert_eq!((&on["peak_mib"], &on["bound_mib"]), (&free["peak_mib"], &free["bound_mib"]));
        assert_eq!((&on["fits"], &on["bound_fits"]), (&fits.into(), &surely.into()), "{memory}");
        assert_eq!(flags_of(&on).contains("out_of_memory"), !fits, "{memory}");
    }
}

#[test]
fn there_is_no_classifier_of_transformers() {
    let message = refused(&[
        "eval",
        "--data",
        "x.csv",
        "--kind",
        "gpumemnet-transformer",
        "--estimator",
        "gpumemnet",
    ]);
    assert!(message.contains("no gpumemnet for transformers is shipped"), "{message}");
}

#[test]
fn published_estimators_answer_for_ones_own_model() {
    let net = ["--graph", "net.graph", "--batch", "32", "--estimator"];
    for who in ["horus", "gpumemnet"] {
        let said = answer(&[&net[..], &[who]].concat());
        assert_eq!(said["estimator"], who);
        assert_eq!(said["peak_mib"], said["bound_mib"], "no promise is made up");
    }
    assert!(refused(&["--task", "BERT_base", "--estimator", "gpumemnet"]).contains("transformers"));
    assert!(refused(&["--task", "vgg", "--horus-quirks"]).contains("--estimator horus --summary"));
}
