//! Emulated trainings: memory, checkpoints, and the time that neighbours leave.

use super::fleet::{COLOC, Fleet, wait_until};
use std::time::{Duration, Instant};

#[test]
fn a_trainer_dies_of_memory_in_pytorchs_words() {
    let fleet = Fleet::start("1xV100-16GB", &["--time-scale", "100"]);
    let neighbour = fleet.train(&["--memory", "10G", "--seconds", "100000"]);
    wait_until("the neighbour's plateau", || fleet.used_mib(0) == 10 << 10);
    let (code, log, complaint) = fleet.train(&["--memory", "8G"]).end();
    assert_eq!(code, Some(1), "{log}");
    let pid = neighbour.0.id();
    for expected in [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 16.00 GiB",
        &format!("Process {pid} has 10.00 GiB memory in use."),
    ] {
        assert!(complaint.contains(expected), "{complaint}");
    }
    assert_eq!(fleet.used_mib(0), 10 << 10, "the dead hold nothing");
}

#[test]
fn a_trainer_that_loads_first_holds_little_and_leaves_its_sms_idle() {
    let fleet = Fleet::start("1xA100-40GB", &[]);
    let load = ["--load-s", "3000", "--load-mib", "700"];
    let trainer = fleet.train(&[&["--memory", "8G", "--seconds", "4000"], &load[..]].concat());
    let process = || fleet.show()["gpus"][0]["processes"][0].clone();
    wait_until("loading", || fleet.used_mib(0) == 700);
    assert_eq!((process()["gract"].clone(), process()["smact"].clone()), (0.0.into(), 0.0.into()));
    fleet.ask(COLOC, &["emu", "clock", "--time-scale", "1000"]);
    wait_until("training", || process()["smact"].as_f64() > Some(0.0));
    wait_until("the plateau", || fleet.used_mib(0) == 8 << 10);
    let (code, log, complaint) = trainer.end();
    assert_eq!(code, Some(0), "{complaint}");
    assert!(log.contains("loading data"), "{log}");
    // Loading is part of the run: the first sign of progress comes when three quarters of it are over.
    let first = log.lines().find(|line| line.contains("progress ")).expect("progress");
    let percent: u32 = first.rsplit(' ').next().expect("words")[..2].parse().expect("a number");
    assert!((75..=99).contains(&percent), "{first}");
}

#[test]
fn a_trainer_evaluates_now_and_then_with_more_memory() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    let evaluate = ["--eval-every-s", "600", "--eval-s", "300", "--eval-mib", "6000"];
    let _trainer =
        fleet.train(&[&["--memory", "2000", "--seconds", "1000000"], &evaluate[..]].concat());
    for (what, mib) in [("training", 2000), ("evaluating", 6000), ("training again", 2000)] {
        wait_until(what, || fleet.used_mib(0) == mib);
    }
}

#[test]
fn a_trainer_that_grows_late_keeps_it_or_dies_of_it() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    let growing = |mib: &'static str| {
        ["--memory", "2000", "--seconds", "1000000", "--grow-after-s", "300", "--grow-mib", mib]
    };
    let first = fleet.train(&growing("30000"));
    wait_until("the plateau", || fleet.used_mib(0) == 2000);
    wait_until("late growth", || fleet.used_mib(0) == 30_000);
    let (code, _, complaint) = fleet.train(&growing("20000")).end();
    assert_eq!(code, Some(1), "{complaint}");
    assert!(complaint.contains("CUDA out of memory. Tried to allocate"), "{complaint}");
    drop(first);
}

#[test]
fn a_printed_error_is_no_end() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "1000"]);
    let (code, log, printed) =
        fleet.train(&["--memory", "2000", "--seconds", "100", "--print-oom"]).end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"));
    assert!(log.contains("progress 100%") && log.contains("done"), "{log}");
}

#[test]
fn phases_that_make_no_sense_are_refused() {
    let fleet = Fleet::start("1xA100-40GB", &[]);
    for (flags, said) in [
        (&["--load-mib", "500"][..], "--load-s"),
        (&["--load-s", "100"], "less than the run's 100 seconds"),
        (&["--load-s=-1"], "0 to 1000000000 seconds"),
        (&["--load-s", "nan"], "0 to 1000000000 seconds"),
        (&["--load-s", "1", "--load-mib", "17T"], "--load-mib: expected"),
        (&["--eval-every-s", "60"], "--eval-s"),
        (&["--eval-every-s", "60", "--eval-s", "60", "--eval-mib", "1G"], "more than --eval-s"),
        (&["--eval-every-s", "0.5", "--eval-s", "0.1", "--eval-mib", "1G"], "1 second at least"),
        (&["--grow-after-s", "5"], "--grow-mib"),
        (&["--grow-after-s", "2e9", "--grow-mib", "5"], "--grow-after-s: expected"),
    ] {
        let arguments = [&["--memory", "2G", "--seconds", "100"], flags].concat();
        let (code, _, complaint) = fleet.train(&arguments).end();
        assert_eq!(code, Some(2), "{flags:?}: {complaint}");
        assert!(complaint.contains(said), "{flags:?}: {complaint}");
    }
}

#[test]
fn a_stopped_clock_shows_settled_trainers() {
    let fleet = Fleet::start("2xA100-40GB", &["--freeze"]);
    let trainer = fleet.train(&["--profile", "vgg"]);
    wait_until("the plateau", || fleet.used_mib(0) == 6684);
    let (first, second) = (fleet.show(), fleet.show());
    assert_eq!(first, second);
    assert!(first["gpus"][0]["power_w"].as_f64() > Some(200.0));
    drop(trainer);
    wait_until("an idle GPU", || fleet.used_mib(0) == 0);
}

#[test]
fn checkpoints_carry_a_training_over() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    let file = fleet.path().join("checkpoint.json");
    let name = file.to_str().expect("text");
    let arguments = ["--profile", "resnet", "--checkpoint", name, "--auto-resume"];
    let first = fleet.train(&arguments);
    wait_until("work", || fleet.used_mib(0) == 3934);
    first.signal("USR1");
    wait_until("the checkpoint", || file.exists());
    let early = std::fs::read_to_string(&file).expect("a checkpoint");
    first.signal("TERM");
    let (code, log, _) = first.end();
    assert_eq!(code, Some(143));
    let saved = log.lines().filter(|line| line.starts_with("checkpoint ")).count();
    assert_eq!(saved, 2, "{log}");
    let late = std::fs::read_to_string(&file).expect("a checkpoint");
    assert_ne!(early, late, "work went on after SIGUSR1");
    // The rest goes faster, and starts where the first run ended.
    fleet.ask(COLOC, &["emu", "clock", "--time-scale", "2000"]);
    let (code, log, complaint) = fleet.train(&arguments).end();
    assert_eq!(code, Some(0), "{complaint}");
    assert!(!log.contains("from 0.0 %"), "{log}");
    assert!(log.contains("progress 100%") && log.contains("done"), "{log}");
}

#[test]
fn a_task_takes_the_time_that_its_neighbours_leave_it() {
    let fleet = Fleet::start("2xA100-40GB", &["--time-scale", "100"]);
    let speed = || {
        let picture = fleet.show();
        let processes = picture["gpus"][0]["processes"].as_array().expect("processes").clone();
        processes.iter().map(|p| p["speed"].as_f64().expect("a speed")).collect::<Vec<_>>()
    };
    let _long = fleet.train(&["--profile", "vgg", "--seconds", "1000000"]);
    wait_until("the first", || speed() == [1.0]);
    let second = fleet.train(&["--profile", "vgg", "--seconds", "100"]);
    wait_until("the second", || speed().len() == 2);
    let shared = speed();
    assert!(shared.iter().all(|speed| (0.4..0.8).contains(speed)), "{shared:?}");
    let start = Instant::now();
    let (code, ..) = second.end();
    assert_eq!(code, Some(0));
    // A hundred seconds of work at this speed, a hundred times faster; starting up took a little of it.
    let expected = 1.0 / shared[0];
    let took = start.elapsed().as_secs_f64();
    assert!((expected * 0.8..expected * 1.3 + 2.0).contains(&took), "{took} s, not {expected} s");
    wait_until("solitude", || speed() == [1.0]);
}

#[test]
fn full_utilization_can_mean_an_idle_device() {
    let fleet = Fleet::start("1xA100-40GB", &[]);
    let _mix = fleet.train(&["--mix", "tiny-kernels"]);
    wait_until("work", || fleet.show()["gpus"][0]["gract"] == 1.0);
    let query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"];
    assert_eq!(fleet.ask("nvidia-smi", &query).trim(), "100");
    let watched = fleet.ask("dcgmi", &["dmon", "-e", "1001,1002", "-c", "1"]);
    assert!(watched.contains("GPU 0     1.000       0.030"), "{watched}");
    let process = fleet.show()["gpus"][0]["processes"][0].clone();
    assert_eq!((process["gract"].clone(), process["smact"].clone()), (1.0.into(), 0.03.into()));
}

#[test]
fn a_hung_trainer_ignores_everything_but_the_end() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    let mut trainer = fleet.train(&["--profile", "resnet"]);
    wait_until("work", || fleet.used_mib(0) > 0);
    fleet.ask(COLOC, &["emu", "fault", "hang", &trainer.0.id().to_string()]);
    let process = || fleet.show()["gpus"][0]["processes"][0].clone();
    assert_eq!((process()["hung"].clone(), process()["speed"].clone()), (true.into(), 0.0.into()));
    trainer.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert!(trainer.0.try_wait().expect("ours").is_none(), "it hangs");
    fleet.ask(COLOC, &["emu", "fault", "lost", "0"]);
    let (code, _, complaint) = trainer.end();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("the GPU was lost"), "{complaint}");
}
