//! Small made-up runs for the tests of the pages. They resemble a schedule; they predict nothing.

use super::{Attempt, CollocatePage, ComparePage, Experiment, Gpu, Outcome, Run, TaskRecord};
use coloc_sim::{GpuSeries, Summary};

/// A toy policy: every GPU takes `lanes` tasks at once, first come first served.
#[derive(Clone, Copy)]
pub(super) struct Toy {
    pub(super) name: &'static str,
    pub(super) lanes: usize,
    /// One task in so many runs out of memory once; 0 for none.
    pub(super) oom_every: usize,
}

/// Exclusive use beside two ways of sharing.
pub(super) const TOYS: [Toy; 3] = [
    Toy { name: "exclusive", lanes: 1, oom_every: 0 },
    Toy { name: "round-robin mps", lanes: 3, oom_every: 6 },
    Toy { name: "coloc", lanes: 2, oom_every: 0 },
];

const NAMES: [[&str; 2]; 3] =
    [["mobilenet2", "efficientNet"], ["resnet3", "Inception2"], ["bert-base", "gpt2-large"]];

/// A page with these policies over `tasks` tasks and `gpus` GPUs.
pub(super) fn compare(tasks: usize, gpus: usize, toys: &[Toy]) -> ComparePage {
    ComparePage {
        title: "Three policies, one trace".into(),
        trace: format!("toy.csv, {tasks} tasks"),
        fleet: format!("{gpus}xA100-40GB"),
        note: "Predicted by the model, not measured".into(),
        gpus: (0..gpus).map(gpu).collect(),
        classes: ["light", "medium", "heavy"].map(String::from).to_vec(),
        runs: toys.iter().map(|toy| run(*toy, tasks, gpus)).collect(),
    }
}

/// One policy failed every task, and one task never started; the other has no curves.
pub(super) fn one_run_failed() -> ComparePage {
    let mut page = compare(5, 1, &TOYS[..2]);
    page.runs[0].series.clear();
    let run = &mut page.runs[1];
    (run.summary.completed, run.summary.failed) = (0, 5);
    run.summary.jct_mean_s = f64::NAN;
    for task in &mut run.tasks {
        task.end_s = None;
        task.attempts.iter_mut().for_each(|attempt| attempt.outcome = Outcome::OutOfMemory);
    }
    run.tasks[4].attempts.clear();
    page
}

/// Every text of the page tries to become markup.
pub(super) fn hostile_names() -> ComparePage {
    let attack = "</script><script>document.body.dataset.error='ran'</script>\"'<img src=x onerror=alert(1)>";
    let mut page = compare(6, 1, &TOYS[..2]);
    for text in [&mut page.title, &mut page.trace, &mut page.fleet, &mut page.note] {
        *text = attack.into();
    }
    page.gpus[0].name = attack.into();
    page.classes[0] = attack.into();
    page.runs[0].name = attack.into();
    page.runs[0].tasks[0].name = attack.into();
    page
}

fn gpu(index: usize) -> Gpu {
    Gpu {
        name: format!("gpu{index}"),
        model: "A100-40GB".into(),
        memory_mib: 40_960.0,
        limit_w: 400.0,
    }
}

fn run(toy: Toy, tasks: usize, gpus: usize) -> Run {
    let mut free_at = vec![0.0_f64; gpus * toy.lanes];
    let records: Vec<TaskRecord> =
        (0..tasks).map(|index| record(index, toy, gpus, &mut free_at)).collect();
    let series = (0..gpus).map(|gpu| series(&records, gpu)).collect();
    let jct: Vec<f64> =
        records.iter().filter_map(|task| Some(task.end_s? - task.submit_s)).collect();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let wait = |task: &TaskRecord| task.attempts[0].start_s - task.submit_s;
    let makespan = free_at.iter().copied().fold(0.0, f64::max);
    let summary = Summary {
        tasks,
        completed: tasks,
        makespan_s: makespan,
        jct_mean_s: mean(jct.clone()),
        jct_p50_s: mean(jct.clone()) * 0.9,
        jct_p95_s: mean(jct) * 1.8,
        wait_mean_s: mean(records.iter().map(wait).collect()),
        slowdown_mean: slowdown(toy.lanes),
        oom_count: records.iter().filter(|task| task.attempts.len() > 1).count() as u32,
        energy_j: makespan * gpus as f64 * (150.0 + 45.0 * toy.lanes as f64),
        smact_mean: 0.35 + 0.15 * toy.lanes as f64,
        memory_mean_bytes: 9e9 * toy.lanes as f64,
        jain_index: 0.91,
        makespan_bound_s: makespan * 0.8,
        ..Summary::default()
    };
    Run { name: toy.name.into(), summary, tasks: records, series }
}

fn slowdown(lanes: usize) -> f64 {
    1.0 + 0.22 * (lanes - 1) as f64
}

fn record(index: usize, toy: Toy, gpus: usize, free_at: &mut [f64]) -> TaskRecord {
    // A fixed scatter in 0..1, the same under every policy.
    let scatter = (index * 7919 % 997) as f64 / 997.0;
    let class = [0, 1, 1, 2, 0, 2, 1][index % 7];
    let alone = [600.0, 1800.0, 4200.0][class] * (0.6 + 0.8 * scatter);
    let submit = index as f64 * 1100.0 / gpus as f64;
    let lane = (0..free_at.len())
        .min_by(|a, b| free_at[*a].total_cmp(&free_at[*b]))
        .expect("a fleet has a GPU");
    let gpu = lane % gpus;
    let mut start = free_at[lane].max(submit);
    let mut attempts = Vec::new();
    if toy.oom_every > 0 && index % toy.oom_every == toy.oom_every - 1 {
        let end = start + 420.0 * scatter;
        attempts.push(Attempt {
            start_s: start,
            end_s: end,
            gpus: vec![gpu],
            outcome: Outcome::OutOfMemory,
        });
        start = end + 60.0;
    }
    let end = start + alone * slowdown(toy.lanes);
    free_at[lane] = end;
    attempts.push(Attempt {
        start_s: start,
        end_s: end,
        gpus: vec![gpu],
        outcome: Outcome::Completed,
    });
    TaskRecord {
        id: index as u64,
        name: NAMES[class][index % 2].into(),
        class,
        submit_s: submit,
        end_s: Some(end),
        alone_s: Some(alone),
        attempts,
    }
}

/// What a GPU did, from the attempts on it.
fn series(tasks: &[TaskRecord], gpu: usize) -> GpuSeries {
    let mut changes: Vec<(f64, f64, f64)> = vec![(0.0, 0.0, 0.0)];
    for task in tasks {
        let (sm, memory) = [(0.22, 5_000.0), (0.41, 11_000.0), (0.63, 18_500.0)][task.class];
        for attempt in task.attempts.iter().filter(|attempt| attempt.gpus.contains(&gpu)) {
            changes.push((attempt.start_s, sm, memory));
            changes.push((attempt.end_s, -sm, -memory));
        }
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sm, mut memory, mut series) = (0.0_f64, 0.0_f64, GpuSeries::default());
    for (time, more_sm, more_memory) in changes {
        sm += more_sm;
        memory += more_memory;
        let busy = sm.clamp(0.0, 1.0);
        series.t_s.push(time);
        series.sm.push(busy);
        series.memory_mib.push(memory.clamp(0.0, 40_960.0));
        series.power_w.push(if busy > 0.0 { 120.0 + 240.0 * busy } else { 55.0 });
    }
    series
}

/// A study of two workloads and a pair, with some published points and an arrangement that does not fit.
pub(super) fn collocate() -> CollocatePage {
    let mut experiments = copies();
    experiments.extend(pairs());
    CollocatePage {
        title: "Copies of a task on one GPU".into(),
        gpu: gpu(0),
        note: "Predicted by the model, not measured".into(),
        experiments,
    }
}

fn copies() -> Vec<Experiment> {
    let mut experiments = Vec::new();
    for (workload, peak, memory, published) in
        [("resnet26-cifar10", 5.3, 1900.0, 5.35), ("resnet152-imagenet", 1.17, 8300.0, 1.14)]
    {
        let published_at = if peak > 2.0 { 7 } else { 2 };
        for copies in [1_u32, 2, 3, 5, 7] {
            for (share, part, layout) in
                [("streams", 0.6, ""), ("mps", 1.0, ""), ("mig", 0.68, "1g")]
            {
                let throughput = f64::from(copies).min(peak * part).max(1.0);
                let has_point = share == "mps" && copies == published_at;
                experiments.push(Experiment {
                    workload: workload.into(),
                    share: share.into(),
                    layout: if layout.is_empty() {
                        String::new()
                    } else {
                        format!("{copies} x {layout}")
                    },
                    copies,
                    fits: memory * f64::from(copies) <= 40_960.0,
                    throughput,
                    slowdown_mean: f64::from(copies) / throughput,
                    smact: (0.17 * throughput).min(1.0),
                    memory_mib: memory * f64::from(copies),
                    power_w: 120.0 + 30.0 * throughput,
                    energy_ratio: 0.4 + 0.6 / throughput,
                    published: has_point.then_some(published),
                    published_what: has_point.then(|| "EuroMLSys'24 analysis".to_owned()),
                    ..Experiment::default()
                });
            }
        }
    }
    experiments
}

fn pairs() -> impl Iterator<Item = Experiment> {
    let rows = [
        ("streams", "", 1.31, 1.29),
        ("mps", "", 1.74, 1.76),
        ("mig", "2 x 3g compute instances, shared memory", 1.49, 1.58),
    ];
    rows.into_iter().map(|(share, layout, throughput, published)| Experiment {
        workload: "resnet152-mixed".into(),
        with: Some("dlrm-large".into()),
        share: share.into(),
        layout: layout.into(),
        copies: 1,
        fits: true,
        throughput,
        slowdown_mean: 2.0 / throughput,
        smact: 0.6,
        memory_mib: 37_610.0,
        power_w: 231.0,
        energy_ratio: 0.8,
        published: Some(published),
        published_what: Some("derived from the published end times".into()),
    })
}
