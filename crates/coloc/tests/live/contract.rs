//! The memory contract in ordinary use: what is promised to a task stays promised.

use super::home::{Home, text};
use serde_json::Value;

const COLOC: &str = env!("CARGO_BIN_EXE_coloc");
/// Long enough for every kind of evidence, at the scale of these tests.
const FLEET: [&str; 4] = ["--emulate", "1xA100-40GB", "--time-scale", "200"];

fn train(memory: &str, seconds: &str) -> String {
    format!("{COLOC} emu train --memory {memory} --seconds {seconds}")
}

fn gib(task: &Value, field: &str) -> f64 {
    task[field].as_f64().unwrap_or(f64::NAN) / f64::from(1 << 30)
}

fn counts(home: &Home, id: u32) -> (u64, u64) {
    let task = home.show(id);
    let count = |field: &str| task[field].as_u64().expect("a count");
    (count("attempts"), count("ooms"))
}

#[test]
fn a_declaration_holds_while_a_task_loads_its_data() {
    let home = Home::new(&FLEET);
    // Half a GiB for ten minutes, then what it declared.
    let script = format!("{} && {}", train("512M", "600"), train("28G", "2000"));
    let first = home.submit(&["--gpu-mem", "30G", "--", "sh", "-c", &script]);
    let second = home.submit(&["--gpu-mem", "35G", "--", "sh", "-c", &train("33G", "60")]);
    home.wait_for("the task to train", |home| gib(&home.show(first), "peak_bytes") > 25.0);
    let shown = home.show(first);
    assert_eq!((gib(&shown, "promised_bytes"), gib(&shown, "limit_bytes")), (30.0, 30.0));
    assert_eq!((&shown["memory_basis"], &shown["settled"]), (&"declared".into(), &false.into()));
    assert_eq!(home.state(second), "pending", "65 GiB are not promised of 40");
    for id in [first, second] {
        home.wait_for_state(id, "completed");
        assert_eq!(counts(&home, id), (1, 0), "{}", home.story(id));
    }
}

#[test]
fn tasks_of_which_nothing_is_known_run_alone_until_they_train() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--time-scale", "200"]);
    let ids: Vec<u32> = (0..8)
        .map(|task| {
            // Each is a kind of its own.
            let script = format!("echo kind {task}; {}", train(&format!("{}G", 21 + task), "900"));
            home.submit(&["--", "sh", "-c", &script])
        })
        .collect();
    for &id in &ids {
        home.wait_for_state(id, "completed");
        assert_eq!(counts(&home, id), (1, 0), "{}", home.story(id));
    }
    let story = home.story(ids[0]);
    assert!(story.contains("has settled: it trains with"), "{story}");
    assert_eq!(home.show(ids[0])["memory_basis"], "unknown");
}

#[test]
fn what_settled_has_company_and_its_kind_is_known() {
    let home = Home::new(&FLEET);
    let script = train("6G", "30000");
    let words = ["--", "sh", "-c", script.as_str()];
    let first = home.submit(&words);
    let sibling = home.submit(&words);
    home.wait_for_state(first, "running");
    let why = home.json(&["why", &sibling.to_string()]);
    assert_eq!(why["awaits"], first, "{why}");
    assert!(why["summary"].as_str().expect("a text").contains("is the first of its kind"), "{why}");
    home.wait_for_state(sibling, "running");
    assert_eq!(home.state(first), "running", "they share");
    let shown = home.show(sibling);
    assert_eq!(shown["memory_basis"], "history");
    assert!((6.0..7.5).contains(&gib(&shown, "promised_bytes")), "{shown}");
    let (kept, held) = (home.show(first), gib(&home.show(first), "peak_bytes"));
    assert!((gib(&kept, "promised_bytes") / held - 1.1).abs() < 0.01, "{kept}");
}

#[test]
fn promises_survive_the_daemon() {
    let mut home = Home::new(&FLEET);
    let settled = home.submit(&["--", "sh", "-c", &train("6G", "40000")]);
    home.wait_for("evidence", |home| home.show(settled)["settled"] == true);
    let declared = home.submit(&["--gpu-mem", "30G", "--", "sh", "-c", &train("1G", "40000")]);
    home.wait_for_state(declared, "running");
    let promise = |home: &Home, id: u32| {
        let task = home.show(id);
        ["promised_bytes", "limit_bytes", "memory_basis", "settled"]
            .map(|field| task[field].clone())
    };
    let before = [settled, declared].map(|id| promise(&home, id));
    home.kill();
    home.boot();
    assert_eq!([settled, declared].map(|id| promise(&home, id)), before);
    // There is no room for another of 5 GiB, whatever is in use.
    let third = home.submit(&["--gpu-mem", "5G", "--", "true"]);
    home.wait_for("a look at it", |home| {
        home.json(&["why", &third.to_string()])["gpus"][0].is_object()
    });
    assert_eq!(home.state(third), "pending");
}

#[test]
fn a_limit_that_was_too_small_is_lifted_and_not_raised_bit_by_bit() {
    let home = Home::new(&FLEET);
    let id = home.submit(&["--gpu-mem", "4G", "--", "sh", "-c", &train("14G", "60")]);
    home.wait_for_state(id, "completed");
    let (attempts, _) = counts(&home, id);
    assert!(attempts <= 3, "{}", home.story(id));
    assert_eq!(home.show(id)["limit_bytes"], Value::Null);
}

#[test]
fn a_printed_message_is_not_an_end() {
    let home = Home::new(&FLEET);
    let text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB.";
    let script = format!("{} && echo '{text}'", train("4G", "60"));
    let id = home.submit(&["--gpu-mem", "5G", "--", "sh", "-c", &script]);
    home.wait_for_state(id, "completed");
    assert_eq!(counts(&home, id), (1, 0));
}

#[test]
fn what_cannot_fit_is_refused_with_the_numbers() {
    let home = Home::new(&FLEET);
    let config = home.path().join("config.json");
    let large = r#"{"model_type":"gpt2","architectures":["GPT2LMHeadModel"],"n_embd":8192,"n_layer":48,"n_head":64,
                    "n_positions":1024,"vocab_size":50257}"#;
    std::fs::write(&config, large).expect("a file");
    let config = config.to_str().expect("a path");
    for little in ["0", "12"] {
        let refused = home.try_run(&["submit", "--gpu-mem", little, "--", "true"]);
        assert!(text(&refused.stderr).contains("12 GiB are 12G"), "{}", text(&refused.stderr));
    }
    for words in [vec!["--gpu-mem", "41G"], vec!["--hf-config", config]] {
        let all: Vec<&str> =
            ["submit"].iter().chain(&words).copied().chain(["--", "true"]).collect();
        let refused = home.try_run(&all);
        let said = text(&refused.stderr);
        assert!(!refused.status.success() && said.contains("the largest GPU here has"), "{said}");
        let all: Vec<&str> = words.into_iter().chain(["--force", "--", "true"]).collect();
        home.wait_for_state(home.submit(&all), "completed");
    }
    assert_eq!(home.json(&["queue", "--all"])["tasks"].as_array().map(Vec::len), Some(2));
}

#[test]
fn submit_show_and_why_say_which_rule_applies() {
    let home = Home::new(&FLEET);
    let said = |words: &[&str]| {
        let all: Vec<&str> =
            ["submit"].iter().chain(words).copied().chain(["--", "sleep", "60"]).collect();
        text(&home.try_run(&all).stderr)
    };
    assert!(
        said(&["--gpu-mem", "30G"])
            .contains("memory declared: 30.0 GiB are kept for it as long as it runs")
    );
    assert!(said(&[]).contains("memory unknown: it has a GPU to itself until it is seen to train"));
    let shown = home.run(&["show", "1"]);
    assert!(shown.contains("declared: 30.0 GiB are kept"), "{shown}");
    let why = home.run(&["why", "2"]);
    assert!(why.contains("Memory unknown"), "{why}");
    let plain = Home::new(&["--emulate", "1xA100-40GB", "--preset", "carma-v2"]);
    let output = plain.try_run(&["submit", "--gpu-mem", "3G", "--", "true"]);
    assert!(text(&output.stderr).contains("has no memory contract"), "{}", text(&output.stderr));
}

#[test]
fn borrowed_memory_is_given_back() {
    let home = Home::new(&FLEET);
    // It trains with little for long, and then with what it declared. Where it grows faster than the other goes it starts
    // again, and goes on from there.
    let first = format!("{}/first", home.path().display());
    let little = train("2G", "1500");
    let script =
        format!("test -e {first} || {{ touch {first}; {little}; }}; {}", train("28G", "300"));
    let lender = home.submit(&["--gpu-mem", "30G", "--gpu-mem-reclaim", "--", "sh", "-c", &script]);
    let borrower = home.submit(&[
        "--gpu-mem",
        "20G",
        "--gpu-mem-borrow",
        "--",
        "sh",
        "-c",
        &train("18G", "2000"),
    ]);
    home.wait_for_state(borrower, "running");
    assert_eq!(home.state(lender), "running");
    home.wait_for_state(lender, "completed");
    assert_eq!(counts(&home, lender).1, 0, "{}", home.story(lender));
    home.wait_for_state(borrower, "completed");
    let story = home.story(borrower);
    assert!(story.contains("the task that lent it wants it"), "{story}");
}

/// What is promised of a task that is drawn for [`two_hundred_tasks_of_every_kind_get_along`].
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sort {
    /// Declared right: whatever others do, it runs once.
    Honest,
    /// Declared too little, or nothing: it completes all the same.
    Wrong,
}

/// One of six kinds of tasks, with sizes of its own.
fn drawn(number: u32) -> (Sort, Vec<String>) {
    let size = 3 + number * 7 % 11;
    let words = |declared: Option<u32>, work: String| {
        let declared = declared.map(|gib| vec!["--gpu-mem".to_owned(), format!("{gib}G")]);
        let work = format!("emu train --sm 0.05 --gpu-active 0.1 --seconds 400 {work}");
        let work = [COLOC].into_iter().chain(work.split_whitespace()).map(str::to_owned).collect();
        [declared.unwrap_or_default(), vec!["--".to_owned()], work].concat()
    };
    match number % 6 {
        0 => (
            Sort::Honest,
            words(Some(size + 1), format!("--memory {size}G --load-s 150 --load-mib 600")),
        ),
        1 => (
            Sort::Honest,
            words(
                Some(size + 4),
                format!("--memory {size}G --grow-after-s 200 --grow-mib {}G", size + 3),
            ),
        ),
        2 => (Sort::Honest, words(Some(size * 3), format!("--memory {size}G"))),
        3 => (Sort::Wrong, words(Some(size), format!("--memory {}G", size + 6))),
        4 => (Sort::Wrong, words(None, format!("--memory {size}.{number}G"))),
        _ => (Sort::Honest, words(Some(size + 1), format!("--memory {size}G --print-oom"))),
    }
}

/// What was promised to each, what it held, and what happened when: a failure is about which tasks shared a GPU.
fn whole_stories(home: &Home, tasks: &[(u32, Sort)]) -> String {
    let one = |&(id, sort): &(u32, Sort)| {
        let task = home.show(id);
        let [promised, peak] = ["promised_bytes", "peak_bytes"].map(|field| gib(&task, field));
        let lines = task["story"].as_array().into_iter().flatten();
        let lines: Vec<String> = lines
            .map(|line| {
                format!("  {:.2} {}", line["at"].as_f64().unwrap_or(f64::NAN), line["what"])
            })
            .collect();
        format!("{id} {sort:?} promised {promised:.1} peak {peak:.1} GiB\n{}\n", lines.join("\n"))
    };
    tasks.iter().map(one).collect()
}

#[test]
fn two_hundred_tasks_of_every_kind_get_along() {
    let home = Home::new(&["--emulate", "4xA100-40GB", "--time-scale", "100", "--share", "mps"]);
    let tasks: Vec<(u32, Sort)> = (0..200)
        .map(|number| {
            let (sort, words) = drawn(number);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            (home.submit(&words), sort)
        })
        .collect();
    let ended = |home: &Home| {
        let queue = home.json(&["queue"]);
        queue["tasks"].as_array().is_some_and(Vec::is_empty)
    };
    home.wait_at_most(std::time::Duration::from_secs(600), "all of them", ended);
    for &(id, sort) in &tasks {
        let (attempts, ooms) = counts(&home, id);
        let told = || {
            let (story, all) = (home.story(id), whole_stories(&home, &tasks));
            format!("task {id}, {sort:?}: {attempts} attempts\n{story}\n{all}")
        };
        assert_eq!(home.state(id), "completed", "{}", told());
        match sort {
            Sort::Honest => assert_eq!((attempts, ooms), (1, 0), "{}", told()),
            // The first may have had too little room; one of the two that follow has all that there is.
            Sort::Wrong => assert!(attempts <= 3, "{}", told()),
        }
    }
}
