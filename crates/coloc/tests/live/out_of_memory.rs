//! A task that runs out of GPU memory comes back without its user, and its neighbours never notice.

use super::home::Home;

fn train<'a>(extra: &[&'a str]) -> Vec<&'a str> {
    let coloc = env!("CARGO_BIN_EXE_coloc");
    [coloc, "emu", "train"].iter().chain(extra).copied().collect()
}

#[test]
fn a_task_that_wants_more_than_it_said_is_recovered() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--time-scale", "50"]);
    // Ten say 18 GiB; this one says 10 and takes 26.
    let neighbour = train(&["--memory", "18G", "--seconds", "60"]);
    let mut words = vec!["--gpu-mem", "18G", "--"];
    words.extend(&neighbour);
    let neighbours = [home.submit(&words), home.submit(&words)];
    let mut words = vec!["--gpu-mem", "10G", "--"];
    let liar = train(&["--memory", "26G", "--seconds", "20"]);
    words.extend(&liar);
    let greedy = home.submit(&words);
    home.wait_for_state(greedy, "completed");
    let story = home.story(greedy);
    assert!(
        story.contains("ran out of GPU memory") && story.contains("CUDA out of memory"),
        "{story}"
    );
    assert!(home.show(greedy)["ooms"].as_u64() >= Some(1));
    for neighbour in neighbours {
        home.wait_for_state(neighbour, "completed");
        let task = home.show(neighbour);
        assert_eq!((task["attempts"].as_u64(), task["ooms"].as_u64()), (Some(1), Some(0)));
    }
}

/// Where nothing else holds a task to its word, the watchdog does, before its neighbour asks for what it was promised.
#[test]
fn whoever_keeps_what_others_were_promised_goes_and_comes_back() {
    let flags = ["--emulate", "1xA100-40GB", "--time-scale", "50"];
    let policy = ["--queue", "best-effort", "--place", "magm", "--share", "streams"];
    let mut home = Home::new(&[&flags[..], &policy].concat());
    let go = home.path().join("go");
    let until = format!("while ! test -e {}; do sleep 0.02; done", go.display());
    let patient = home.submit(&["--gpu-mem", "30G", "--", "sh", "-c", &until]);
    home.wait_for_state(patient, "running");
    let mut words = vec!["--gpu-mem", "8G", "--on-oom", "grow", "--"];
    let liar = train(&["--memory", "20G", "--seconds", "120"]);
    words.extend(&liar);
    let greedy = home.submit(&words);
    home.wait_for("the watchdog", |home| home.story(greedy).contains("ended by the watchdog"));
    // Why it went is known to the next daemon too.
    home.kill();
    home.boot();
    home.wait_for_state(greedy, "recovering");
    assert_eq!(home.state(patient), "running");
    std::fs::write(&go, "").expect("a file");
    home.wait_for_state(greedy, "completed");
    assert!(home.show(greedy)["ooms"].as_u64() >= Some(1));
    assert_eq!(home.show(patient)["attempts"], 1);
}

/// Texts are the user's: an error of another run is no reason to give a task 22 MiB.
#[test]
fn an_error_with_the_figures_of_another_run_decides_nothing() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50"]);
    let error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity \
                 of 2.00 GiB of which 4.00 MiB is free. Including non-PyTorch memory, this process has 2.00 MiB \
                 memory in use.";
    let printed = |code: u8| format!("echo '{error}' >&2; exit {code}");
    let survived = home.submit(&["--", "sh", "-c", &printed(0)]);
    let failed =
        home.submit(&["--gpu-mem", "4G", "--on-oom", "fail", "--", "sh", "-c", &printed(1)]);
    home.wait_for_state(survived, "completed");
    home.wait_for_state(failed, "out_of_memory");
    assert_eq!(home.show(survived)["ooms"], 0);
    let story = home.story(failed);
    assert!(story.contains("ran out of GPU memory") && !story.contains("wanting"), "{story}");
    assert_eq!(home.show(failed)["peak_bytes"], 0, "nothing was seen of it");
}

#[test]
fn a_task_may_choose_to_fail_instead() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50"]);
    let liar = train(&["--memory", "60G", "--seconds", "20"]);
    let mut words = vec!["--on-oom", "fail", "--"];
    words.extend(&liar);
    let id = home.submit(&words);
    home.wait_for_state(id, "out_of_memory");
    assert_eq!(home.show(id)["attempts"], 1);
}
