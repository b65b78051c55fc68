//! The page as a scraper reads it.

use super::counters::Counters;
use super::exporter::{Board, Edge, Names, render};
use super::form::older;
use super::histogram::{Histogram, SHORT};
use crate::owner::{GpuNumbers, Metrics, TaskNumbers};
use crate::record::Uid;
use coloc_core::PassTotals;
use coloc_model::TaskState;
use rustc_hash::FxHashMap;
use std::time::Duration;

fn gpu(index: u32) -> GpuNumbers {
    GpuNumbers {
        index,
        uuid: format!("GPU-{index}"),
        model: "A100-40GB".to_owned(),
        capacity: 40 << 30,
        promised: 12 << 30,
        foreign: 0,
        residents: 1,
        sm_demand: 0.7,
        lost: index == 1,
        drained: false,
        sample: None,
    }
}

fn task(id: u32, name: &str) -> TaskNumbers {
    let (promised, used) = (12 << 30, Some(11 << 30));
    TaskNumbers {
        id,
        name: name.to_owned(),
        user: Uid(7),
        gpu: 0,
        promised,
        used,
        started_s: None,
        energy_j: None,
    }
}

fn metrics(tasks: FxHashMap<(Uid, TaskState), u64>, on_gpus: Vec<TaskNumbers>) -> Metrics {
    Metrics {
        counters: Counters::default(),
        passes: PassTotals::default(),
        tasks,
        held: FxHashMap::default(),
        gpus: vec![gpu(0), gpu(1)],
        on_gpus,
        left_out: 3,
        draining: false,
        disk_full: true,
        monitor_silent: Duration::from_millis(1500),
        time_scale: 1.0,
    }
}

fn page(seen: Metrics) -> String {
    let edge = Edge {
        emulated: true,
        began_s: 1.5,
        journal_bytes: Some(4096),
        requests: vec![("2xx", 9)],
        request_seconds: Histogram::new(SHORT),
        listeners: 2,
    };
    let names = Names::new(&seen, |user| format!("user{}", user.0));
    let board = Board { name: "NVIDIA A100-SXM4-40GB".to_owned(), address: "0000:07".to_owned() };
    older(&render(seen, edge, names, vec![board], "gpu1".to_owned()))
}

#[test]
fn a_name_full_of_escapes_stays_one_label() {
    let name = "a\"} 1\n# EOF\ncoloc_evil 9\\";
    let page = page(metrics(FxHashMap::default(), vec![task(5, name)]));
    let escaped = r#"name="a\"} 1\n# EOF\ncoloc_evil 9\\""#;
    let lines: Vec<&str> = page.lines().filter(|line| line.contains("coloc_evil")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(escaped)), "{lines:?}");
}

#[test]
fn what_is_not_known_has_no_series() {
    let page = page(metrics(FxHashMap::default(), Vec::new()));
    let has = |start: &str| page.lines().any(|line| line.starts_with(start));
    assert!(!has("coloc_gpu_memory_used_bytes{") && !has("DCGM_FI_DEV_POWER_USAGE{"), "{page}");
    assert!(has("coloc_gpu_lost{gpu=\"1\",UUID=\"GPU-1\"} 1"), "{page}");
    assert!(has("coloc_journal_writable 0") && has("coloc_monitor_silent_seconds 1.5"), "{page}");
    assert!(has("coloc_tasks_left_out 3") && has("process_resident_memory_bytes "), "{page}");
}

#[test]
fn users_beyond_the_bound_share_one_series() {
    let tasks = (0..300).map(|user| ((Uid(user), TaskState::Pending), 2)).collect();
    let page = page(metrics(tasks, Vec::new()));
    let series: Vec<&str> = page.lines().filter(|line| line.starts_with("coloc_tasks{")).collect();
    assert_eq!(series, ["coloc_tasks{state=\"pending\",user=\"(others)\"} 600.0"]);
    let tasks = (0..30).map(|user| ((Uid(user), TaskState::Pending), 2)).collect();
    let page = self::page(metrics(tasks, Vec::new()));
    assert_eq!(page.lines().filter(|line| line.starts_with("coloc_tasks{")).count(), 30);
}
