//! What was promised and used of the GPUs: `report` and `history`.

use super::home::Home;

#[test]
fn energy_and_gpu_hours_of_tasks_add_up_in_every_report() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--time-scale", "50"]);
    assert!(home.run(&["report"]).starts_with("No task ran in that time"));
    assert!(home.run(&["history"]).starts_with("No task has ended"));
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let train = ["--gpu-mem", "10G", "--", coloc, "emu", "train", "--memory", "8G"];
    let ids = [
        home.submit(&[&train[..], &["--seconds", "150"]].concat()),
        home.submit(&[&train[..], &["--seconds", "100"]].concat()),
    ];
    ids.iter().for_each(|&id| home.wait_for_state(id, "completed"));
    let failed = home.submit(&["--", "false"]);
    home.wait_for_state(failed, "failed");

    let history = home.json(&["history", "--since", "today"]);
    let tasks = history["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 3);
    let energy: f64 = tasks.iter().filter_map(|task| task["energy_j"].as_f64()).sum();
    let first = tasks.iter().find(|task| task["id"] == ids[0]).expect("it ended");
    assert_eq!(first["energy_kind"], "emulated");
    assert!(first["smact_mean"].as_f64().expect("seen") > 0.1, "{first}");
    let promised = first["gpu_hours_promised"].as_f64().expect("a number");
    let used = first["gpu_hours_used"].as_f64().expect("a number");
    assert!(used > 0.0 && used <= promised, "8 of the 10 GiB are held: {first}");
    let shown = home.show(ids[0]);
    assert_eq!(
        (&shown["energy_j"], &shown["energy_kind"]),
        (&first["energy_j"], &first["energy_kind"])
    );
    let one = home.json(&["history", &ids[1].to_string()]);
    assert_eq!(one["tasks"].as_array().map(Vec::len), Some(1));
    let newest = home.json(&["history", "-n", "1"]);
    assert_eq!((&newest["tasks"][0]["id"], &newest["truncated"]), (&failed.into(), &true.into()));

    for by in ["user", "group", "gpu", "day"] {
        let report = home.json(&["report", "--since", "7d", "--by", by]);
        assert_eq!((&report["schema"], &report["by"]), (&1.into(), &by.into()));
        assert_eq!(report["total"]["tasks"], 3, "{report}");
        let rows = report["rows"].as_array().expect("rows");
        let sum = |field: &str| rows.iter().filter_map(|row| row[field].as_f64()).sum::<f64>();
        for field in ["gpu_hours_promised", "gpu_hours_used", "energy_j"] {
            let total = report["total"][field].as_f64().expect("a number");
            assert!((sum(field) - total).abs() <= total * 1e-9, "{by} {field}: {report}");
        }
        assert!((sum("energy_j") - energy).abs() < 1e-6 * energy, "{by}: as the tasks tell");
        let watts = sum("energy_j") / (report["time_scale"].as_f64().unwrap() * 5.0);
        assert!(watts > 50.0, "two GPUs at work: {report}");
        assert!(rows[0]["wait_mean_s"].is_number() && rows[0]["ooms"].is_number(), "{report}");
    }
    let csv = home.run(&["report", "--csv"]);
    assert!(csv.starts_with("key,tasks,gpu_hours_promised,gpu_hours_used,wait_mean_s,ooms"));
    let never = home.run(&["report", "--since", "2020-01-01", "--until", "2020-02-01"]);
    assert!(never.starts_with("No task ran"), "{never}");
}

#[test]
fn a_task_without_a_process_on_the_gpu_has_no_part_of_its_work() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50", "--share", "streams"]);
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let idle = [0, 1].map(|_| home.submit(&["--gpu-mem", "2G", "--", "sleep", "12"]));
    idle.iter().for_each(|&id| home.wait_for_state(id, "running"));
    let train = ["emu", "train", "--memory", "4G", "--sm", "0.6", "--gpu-active", "0.9"];
    let words = [&["--gpu-mem", "5G", "--", coloc][..], &train, &["--seconds", "300"]].concat();
    let train = home.submit(&words);
    home.wait_for_state(train, "running");
    assert_eq!(home.show(train)["gpu_ids"], home.show(idle[0])["gpu_ids"]);
    home.wait_for_state(train, "completed");
    idle.iter().for_each(|&id| home.wait_for_state(id, "completed"));
    let history = home.json(&["history"]);
    let of = |id: u32, field: &str| {
        let tasks = history["tasks"].as_array().expect("tasks");
        let task = tasks.iter().find(|task| task["id"] == id).expect("it ended");
        task[field].as_f64().unwrap_or(0.0)
    };
    assert!(of(train, "smact_mean") > 0.4, "{history}");
    for id in idle {
        assert!(of(id, "smact_mean") < 0.01, "{history}");
        let (long, short) = (of(id, "energy_j"), of(train, "energy_j"));
        assert!(long > 0.0 && long < short, "its part of what is drawn in any case: {history}");
    }
}

#[test]
fn a_task_that_ended_while_no_daemon_ran_ran_until_it_ended() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--gpu-mem", "1G", "--", "sleep", "1"]);
    home.wait_for_state(id, "running");
    home.kill();
    std::thread::sleep(std::time::Duration::from_secs(4));
    home.boot();
    home.wait_for_state(id, "completed");
    let ran = home.json(&["history"])["tasks"][0]["ran_s"].as_f64().expect("it ran");
    assert!((0.9..2.5).contains(&ran), "{ran}");
    let shown = home.show(id);
    let span = shown["ended_s"].as_f64().zip(shown["started_s"].as_f64()).map(|(e, s)| e - s);
    assert!(span.is_some_and(|span| (0.9..2.5).contains(&span)), "{shown}");
}

#[test]
fn senseless_times_are_refused() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    for (words, said) in [
        (&["report", "--since", "lately"][..], "expected a span such as 12h or 7d"),
        (&["report", "--since", "1h", "--until", "2h"], "--until: that is not after --since"),
        (&["report", "--by", "moon"], "--by"),
        (&["history", "--since", "2026-02-30"], "expected a span"),
        (&["history", "12345"], "has not ended"),
        (&["history", "-n", "0"], "'0'"),
    ] {
        let output = home.try_run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(said), "{words:?}: {text}");
    }
}
