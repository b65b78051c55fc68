//! `coloc estimate`: what it refuses, what it flags, and what a device's memory changes.

mod support;

use serde_json::Value;
use support::{Workspace, coloc, coloc_configured};

const GPT2: &str = r#"{"model_type":"gpt2","n_embd":256,"n_layer":4,"n_head":4,"vocab_size":1000,"n_positions":1024}"#;
const NET: &str = "input 3x32x32\nconv 16 k3 p1\nrelu\ngap\nlinear 10\n";
const FILES: [(&str, &str); 2] = [("gpt2.json", GPT2), ("net.graph", NET)];

fn refused(flags: &[&str]) -> String {
    let dir = Workspace::with(&FILES);
    coloc(dir.path(), &[&["estimate"], flags].concat()).fails_with(2)
}

/// The same in a folder with a configuration of its own.
fn said(dir: &Workspace, flags: &[&str]) -> support::Run {
    coloc_configured(dir.path(), &[&["estimate"], flags].concat(), "")
}

fn json(dir: &Workspace, flags: &[&str]) -> Value {
    serde_json::from_str(&said(dir, &[flags, &["--json"]].concat()).ok()).expect("JSON")
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
        (&["--task", "vgg", "--attention", "sdpa"], "--attention works with --hf-config"),
        (&["--hf-config", "gpt2.json", "--attention", "tea"], "unknown attention"),
        (&["--task", "BERT_base", "--seq", "128"], "--seq works with"),
        (&["--hf-config", "gpt2.json", "--zero", "2"], "give --gpus"),
        (&["--task", "vgg", "--device-memory", "0"], "a device has some memory"),
        (&["--task", "vgg", "--steps", "5"], "--steps changes nothing here"),
        (&["--task", "vgg", "--state", "."], "--state changes nothing here"),
        (&["--task", "vgg", "--", "python", "x.py"], "the command after -- changes nothing"),
        (
            &["--task", "vgg", "--dry-run", "--", "python", "x.py"],
            "--estimator ladder asks for both",
        ),
        (&["--task", "vgg", "--gpus", "4"], "--gpus changes nothing here"),
        (&["--task", "vgg", "--estimator", "horus", "--env", "nope"], "--env changes nothing"),
        (&["--task", "vgg", "--estimator", "horus", "--optimizer", "sgd"], "--optimizer changes"),
        (
            &["--task", "vgg", "--estimator", "gpumemnet", "--precision", "bf16"],
            "--precision changes",
        ),
        (&["--estimator", "history", "--env", "carma", "--", "x"], "--env changes nothing"),
        (&["--estimator", "history", "--task", "vgg", "--", "x"], "the history knows commands"),
        (&["--estimator", "ladder", "--batch", "512", "--", "x"], "--batch changes nothing"),
        (&["--dry-run", "--batch", "8", "--", "python", "x.py"], "--batch changes nothing"),
        (
            &[
                "eval",
                "--data",
                "x",
                "--kind",
                "gpumemnet-mlp",
                "--estimator",
                "horus",
                "--env",
                "carma",
            ],
            "--env changes nothing",
        ),
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

const MEASURED: &str = "graph,task,batch,optimizer,measured\n\
    plain.graph,,16,sgd,907\nplain.graph,,64,sgd,908\nnet.graph,,32,,1000M\n,xlnet_base_cased_2,,,30000\n";
const PLAIN: &str = "input 64\nlinear 10\n";

/// Constants that were learned are used by name, and what was not measured is flagged.
#[test]
fn an_environment_is_learned_and_used_by_its_name() {
    let files =
        [("rows.csv", MEASURED), ("plain.graph", PLAIN), ("net.graph", NET), ("coloc.toml", "")];
    let dir = Workspace::with(&files);
    let learned = json(&dir, &["learn", "--env", "torch-2.4", "--rows", "rows.csv"]);
    assert_eq!(learned["rows"], 4, "{learned}");
    let base = learned["base_mib"].as_f64().expect("a number");
    let first = &learned["runs"][0];
    let difference = first["measured_mib"].as_f64().zip(first["replayed_mib"].as_f64());
    let difference = difference.map(|(measured, replayed)| (measured - replayed).round());
    assert_eq!(first["difference_mib"].as_f64().map(f64::round), difference);
    assert_eq!(learned["borrowed"]["parts"], serde_json::json!(["batch_norm"]), "{learned}");

    let plain = ["--graph", "plain.graph", "--batch", "16", "--optimizer", "sgd", "--env"];
    let here = json(&dir, &[&plain[..], &["torch-2.4"]].concat());
    let there = json(&dir, &[&plain[..], &["carma"]].concat());
    let peak = |answer: &Value| answer["peak_mib"].as_f64().expect("a number");
    assert!((peak(&here) - peak(&there) - (base - 483.0)).abs() < 0.01, "{here} {there}");
    let spread = learned["spread_mib"].as_f64().expect("rows disagree");
    let above = |answer: &Value| answer["bound_mib"].as_f64().expect("a number") - peak(answer);
    assert!((above(&here) - above(&there) - spread).abs() < 0.01, "{here} {there}");
    let flagged = json(&dir, &["--task", "resnet", "--env", "torch-2.4"]);
    assert!(
        flags_of(&flagged).contains("the memory of batch normalisation was not measured"),
        "{flagged}"
    );

    let listed = said(&dir, &["envs"]).ok();
    assert!(listed.contains("torch-2.4") && listed.contains("ships with coloc"), "{listed}");
    // What the configuration says of submitted tasks is what is estimated.
    std::fs::write(dir.path().join("coloc.toml"), "[submit]\nenv = 'torch-2.4'\n").expect("a file");
    assert_eq!(peak(&json(&dir, &plain[..plain.len() - 1])), peak(&here));
}

#[test]
fn nonsense_teaches_nothing() {
    let files = [("plain.graph", PLAIN), ("net.graph", NET), ("coloc.toml", "")];
    let dir = Workspace::with(&files);
    for (rows, flags, complaint) in [
        ("", &["--measured", "1M", "--task", "vgg"][..], "but the allocator alone holds"),
        ("", &["--measured", "9G"], "nothing to estimate"),
        ("", &["--task", "vgg"], "give --measured"),
        ("", &[], "no measured runs"),
        ("", &["--rows", "rows.csv"], "no rows"),
        ("task,measured\n", &["--rows", "rows.csv"], "no rows"),
        ("task,measured\nvgg,lots\n", &["--rows", "rows.csv"], "rows.csv, line 2: measured"),
        ("task,measured\nvgg,9G\nvgg,\n", &["--rows", "rows.csv"], "line 3: measured is missing"),
        ("task,graph,measured\nvgg,x,9G\n", &["--rows", "rows.csv"], "line 2: expected one of"),
        ("task,measured,batch\nvgg,9G,0\n", &["--rows", "rows.csv"], "line 2: batch: expected 1"),
        ("tusk,measured\n", &["--rows", "rows.csv"], "unknown column \"tusk\""),
        ("task,measured\nvgg,1G\n", &["--rows", "rows.csv"], "line 2: measured 1024 MiB, but"),
    ] {
        std::fs::write(dir.path().join("rows.csv"), rows).expect("a file");
        let complained = said(&dir, &[&["learn", "--env", "mine"], flags].concat()).fails_with(2);
        assert!(complained.contains(complaint), "{flags:?}: {complained}");
    }
    for name in ["gpumemnet", "../x"] {
        said(&dir, &["learn", "--env", name, "--task", "vgg", "--measured", "9G"]).fails_with(2);
    }
    assert!(!dir.files().contains(&"environments".to_owned()), "nothing was stored");
}

#[test]
fn a_broken_environment_is_told_with_its_line() {
    let dir = Workspace::with(&[("coloc.toml", "")]);
    std::fs::create_dir(dir.path().join("environments")).expect("a folder");
    let file = dir.path().join("environments/mine.toml");
    for (text, complaint) in [
        ("base_mib = 700\nrows = many\n", "mine.toml, line 2"),
        (
            "base_mib = 1\nconvolution_mib = 1\nbatch_norm_mib = inf\nrows = 1\n",
            "line 3: batch_norm",
        ),
        ("\u{0}\u{1}", "mine.toml, line 1"),
    ] {
        std::fs::write(&file, text).expect("a file");
        let complained = said(&dir, &["--task", "vgg", "--env", "mine"]).fails_with(2);
        assert!(complained.contains(complaint), "{text}: {complained}");
    }
    let listed = said(&dir, &["envs"]);
    assert!(listed.ok().contains("carma") && listed.stderr().contains("mine.toml"));
}

#[test]
fn the_last_batch_and_a_summary_pass_are_replayed() {
    let peak = |flags: &[&str]| answer(flags)["peak_mib"].as_f64().expect("a number");
    let bert = |more: &[&str]| peak(&[&["--task", "BERT_base"], more].concat());
    assert!(bert(&["--samples", "50000"]) > bert(&[]), "16 samples need blocks of their own");
    assert_eq!(bert(&["--samples", "32000"]), bert(&[]), "nothing is left");
    assert!(bert(&["--summary-pass"]) > bert(&[]), "it leaves blocks behind");
    let net = ["--graph", "net.graph", "--batch"];
    let few = peak(&[&net[..], &["64", "--samples", "8"]].concat());
    assert_eq!(few, peak(&[&net[..], &["8"]].concat()), "fewer than a batch");
}

#[test]
fn a_bound_says_what_it_is_worth() {
    let means = |flags: &[&str]| answer(flags)["bound_means"].to_string();
    assert!(means(&["--task", "vgg"]).contains("99 of 100"));
    assert!(means(&["--task", "BERT_base"]).contains("too few"));
    assert!(means(&["--task", "vgg", "--precision", "bf16"]).contains("rule of thumb"));
    assert!(means(&["--task", "vgg", "--estimator", "horus"]).contains("promises nothing"));
    let mnist = answer(&["--task", "mnist_train", "--env", "carma"]);
    assert!(flags_of(&mnist).contains("environment gpumemnet"), "{mnist}");
}

#[test]
fn attention_that_keeps_its_scores_needs_more() {
    let peak = |attention| {
        let gpt2 = ["--hf-config", "gpt2.json", "--batch", "32", "--attention", attention];
        answer(&gpt2)["peak_mib"].as_f64().expect("a number")
    };
    assert!(peak("eager") > peak("sdpa"), "{} and {}", peak("eager"), peak("sdpa"));
}

#[test]
fn the_published_cap_is_a_quirk() {
    let whole = answer(&["--task", "gpt2_large_2", "--estimator", "horus"]);
    assert!(whole["peak_mib"].as_f64() > Some(40_000.0), "{whole}");
}

#[test]
fn no_input_is_read_without_end() {
    assert!(refused(&["--summary", "/dev/zero"]).contains("more than 64 MiB"));
    let dir = Workspace::with(&[("coloc.toml", "")]);
    let flags = ["estimate", "--graph", "-", "--batch", "32", "--json"];
    let piped: Value =
        serde_json::from_str(&coloc_configured(dir.path(), &flags, NET).ok()).expect("JSON");
    assert_eq!(piped["peak_mib"], answer(&["--graph", "net.graph", "--batch", "32"])["peak_mib"]);
}

/// Layers and a dry run can both be given: the ladder asks for one after the other.
#[test]
fn the_ladder_takes_layers_and_a_dry_run() {
    let dir = Workspace::with(&[("coloc.toml", "")]);
    let flags = ["--estimator", "ladder", "--dry-run", "--steps", "2", "--task", "vgg"];
    let all = [&["estimate", "--json"], &flags[..], &["--", "python", "never-ran.py"]].concat();
    let text = coloc_configured(dir.path(), &all, "").ok();
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["estimator"], "replay");
}

const PAIR: &str =
    "submit_s,task,duration_s,memory_mib,sm\n0,resnet,600,4000,0.3\n0,resnet,600,4000,0.3\n";
const LARGE: &str = "base_mib = 20000\nconvolution_mib = 0\nbatch_norm_mib = 0\nrows = 1\n";

/// A trace on one GPU, under one policy or several.
fn played(dir: &Workspace, verb: &str, flags: &[&str]) -> support::Run {
    let base = [verb, "--trace", "t.csv", "--fleet", "1xA100-40GB"];
    coloc_configured(dir.path(), &[&base[..], flags].concat(), "")
}

/// Two tasks share a GPU where their own environment is taken, and do not with a constant of 20,000 MiB.
#[test]
fn simulations_are_told_estimates_of_the_environment_that_is_named() {
    let dir = Workspace::with(&[("t.csv", PAIR), ("coloc.toml", "")]);
    std::fs::create_dir(dir.path().join("environments")).expect("a folder");
    std::fs::write(dir.path().join("environments/large.toml"), LARGE).expect("a file");
    let shared = ["--place", "magm", "--share", "mps", "--estimator", "replay", "--json"];
    let makespan = |more: &[&str]| {
        let text = played(&dir, "simulate", &[&shared[..], more].concat()).ok();
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["makespan_s"].as_f64().expect("a number")
    };
    assert_eq!(makespan(&["--env", "carma"]), makespan(&[]), "where resnet was measured");
    assert!(makespan(&["--env", "large"]) > 1.5 * makespan(&["--env", "gpumemnet"]));

    let policies = ["--policies", "fifo/magm/mps:oracle,fifo/magm/mps:replay", "--json"];
    let compared = |more: &[&str]| {
        let text = played(&dir, "compare", &[&policies[..], more].concat()).ok();
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        [0, 1].map(|row: usize| answer["policies"][row]["makespan_s"].as_f64().expect("a number"))
    };
    let ([told, usual], [same, large]) = (compared(&[]), compared(&["--env", "large"]));
    assert!(told == same && large > 1.5 * usual, "{told} {same} {usual} {large}");
}

#[test]
fn an_environment_that_changes_no_simulation_is_refused() {
    let mystery = PAIR.replace("resnet", "mystery");
    let dir = Workspace::with(&[("t.csv", PAIR), ("coloc.toml", "")]);
    let unknown = Workspace::with(&[("t.csv", &mystery), ("coloc.toml", "")]);
    for (dir, verb, flags, said) in [
        (&dir, "simulate", &["--env", "carma"][..], "--env changes nothing here"),
        (&dir, "simulate", &["--preset", "carma-v2", "--env", "carma"], "no policy asks it"),
        (
            &dir,
            "compare",
            &["--policies", "coloc,exclusive", "--env", "carma"],
            "no policy asks it",
        ),
        (
            &unknown,
            "simulate",
            &["--estimator", "replay", "--env", "carma"],
            "no graph of any task",
        ),
        (
            &dir,
            "simulate",
            &["--estimator", "replay", "--env", "nowhere"],
            "unknown environment \"nowhere\"; known are carma, gpumemnet",
        ),
        (&dir, "compare", &["--policies", "coloc:replay", "--env", "nowhere"], "known are carma"),
        (&dir, "simulate", &["--estimator", "replay", "--env", "../x"], "is no name of a software"),
    ] {
        let error = played(dir, verb, flags).fails_with(2);
        assert!(error.contains(said), "{flags:?}: {error}");
    }
}
