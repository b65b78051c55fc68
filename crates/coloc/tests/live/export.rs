//! What was measured of tasks, for other tools.

use super::home::Home;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The runs of a folder by the ids of their tasks.
fn runs(root: &Path) -> BTreeMap<String, PathBuf> {
    let folders = |of: &Path| {
        let entries = fs::read_dir(of).expect("a folder").map(|entry| entry.expect("it").path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let mut found = BTreeMap::new();
    for run in folders(root).iter().flat_map(|experiment| folders(experiment)) {
        let task = fs::read_to_string(run.join("tags/coloc.task")).expect("a tag");
        assert_eq!(found.insert(task, run), None, "a run for each task");
    }
    found
}

/// The lines of a metric: time, value, step.
fn metric(run: &Path, name: &str) -> Vec<(u64, f64, u64)> {
    let text = fs::read_to_string(run.join("metrics").join(name)).expect(name);
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, value, step] = words[..] else { panic!("{name}: {line}") };
        (at.parse().expect("ms"), value.parse().expect("a value"), step.parse().expect("a step"))
    };
    text.lines().map(line).collect()
}

#[test]
fn mlflow_finds_what_was_measured_of_tasks() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--time-scale", "50"]);
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let train = ["--", coloc, "emu", "train", "--memory", "8G", "--seconds", "200"];
    let one = home.submit(&[&["--gpu-mem", "10G", "-J", "it's: one"][..], &train].concat());
    let gang = home.submit(&[&["--gpu-mem", "10G", "-G", "2"][..], &train].concat());
    [one, gang].iter().for_each(|&id| home.wait_for_state(id, "completed"));
    let to = home.path().join("mlruns");
    let to = to.to_str().expect("text");
    let said = home.run(&["export", "mlflow", &format!("{one},{gang}"), "--to", to]);
    assert_eq!(said.lines().count(), 2, "{said}");

    let found = runs(Path::new(to));
    let run = &found[&one.to_string()];
    let shown = home.show(one);
    let (start, end) = (&shown["first_started_s"], &shown["ended_s"]);
    let span = |seconds: &serde_json::Value| (seconds.as_f64().expect("a time") * 1000.0) as u64;
    let meta = fs::read_to_string(run.join("meta.yaml")).expect("meta.yaml");
    for line in [
        format!("start_time: {}", span(start)),
        format!("end_time: {}", span(end)),
        "status: 3".to_owned(),
        "run_name: 'it''s: one'".to_owned(),
    ] {
        assert!(meta.lines().any(|known| known == line), "{line}: {meta}");
    }
    let memory = metric(run, "coloc/memory_bytes");
    let most = memory.iter().map(|point| point.1).fold(0.0, f64::max);
    assert!((most - (8u64 << 30) as f64).abs() < 1e9, "it holds 8 GiB: {memory:?}");
    let active = metric(run, "system/DCGMI - SM Active");
    assert!(active.iter().any(|point| point.1 > 0.1), "{active:?}");
    for (at, value, step) in &active {
        assert!((0.0..=1.0).contains(value) && *at + 2000 > span(start) && *at <= span(end));
        assert!(*step <= (span(end) - span(start)) / 1000 + 1, "seconds since the start: {step}");
    }
    let used = metric(run, "system/SMI - Mem Used");
    assert!(used.iter().any(|point| point.1 > 8000.0 && point.1 < 41000.0), "MiB: {used:?}");
    let energy = metric(run, "coloc/energy_j");
    assert_eq!(energy[0].1, shown["energy_j"].as_f64().expect("joules"));
    let of_gang = &found[&gang.to_string()];
    for gpu in ["GPU 0", "GPU 1"] {
        assert!(!metric(of_gang, &format!("system/SMI - Power Draw - {gpu}")).is_empty());
    }

    home.run(&["export", "mlflow", &one.to_string(), "--to", to]);
    assert_eq!(runs(Path::new(to)), found, "a second export makes no second run");
}

#[test]
fn what_cannot_be_exported_is_refused_and_nothing_is_written() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let held = home.submit(&["--hold", "--", "true"]).to_string();
    let new = home.path().join("new");
    let full = home.path().join("full");
    fs::create_dir(&full).expect("a folder");
    fs::write(full.join("thesis.tex"), "").expect("a file");
    let (new, full) = (new.to_str().expect("text"), full.to_str().expect("text"));
    for (words, code, said) in [
        (&[held.as_str(), "--to", new][..], 2, "nothing was measured of task"),
        (&["4711", "--to", new], 1, "4711"),
        (&["1-1000", "--to", new], 2, "at most 64"),
        (&[&held, "--to", full], 2, "no experiment of MLflow"),
        (&[&held, "--to", "/dev/null"], 2, "/dev/null"),
        (&[&held, "--to", ""], 2, "--to"),
        (&[&held, "--to", new, "--experiment", ""], 2, "expected a name"),
        (&[&held], 2, "--to"),
    ] {
        let output = home.try_run(&[&["export", "mlflow"][..], words].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
    assert!(!Path::new(new).exists());
    assert_eq!(fs::read_dir(full).expect("a folder").count(), 1);
}
