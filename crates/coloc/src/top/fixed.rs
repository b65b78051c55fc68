//! The data of the two text mocks, for tests: 12 tasks on four GPUs, others that wait.

use super::app::{App, Connection, Log};
use super::update::{Msg, update};
use coloc_api::view::{
    Expected, ForeignView, GpuView, GpuWhy, InstanceView, MemoryView, PolicyView, ReasonCode,
    ResidentView, RuleView, StatusView, TaskView, VerdictView, VerdictWord, WhyView,
};
use coloc_model::TaskState;

const GIB: f64 = (1u64 << 30) as f64;

/// Seconds of a day that begins at 0.
pub(super) fn at(hour: u32, minute: u32) -> f64 {
    f64::from(hour * 3600 + minute * 60)
}

/// The clock of that day.
pub(super) fn day_clock(at_s: f64) -> (u32, u32, u32) {
    let seconds = at_s.rem_euclid(86_400.0) as u32;
    (seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn bytes(gib: f64) -> u64 {
    (gib * GIB) as u64
}

/// A running task: id, name, user, GPUs, used, promised, estimate, bound, started, ends, slowdown.
type Running =
    (u32, &'static str, &'static str, &'static [u32], [f64; 4], (u32, u32), (u32, u32), f64);

#[rustfmt::skip] // One row a line.
const RUNNING: [Running; 12] = [
    (412, "resnet50-imagenet", "chen", &[0], [11.0, 11.6, 10.7, 12.4], (11, 5), (16, 20), 1.08),
    (431, "bert-base-sst2", "ben", &[0], [8.6, 9.1, 8.9, 9.8], (12, 12), (15, 5), 1.05),
    (438, "unet-cells", "ana", &[0], [6.2, 6.5, 7.1, 8.0], (13, 1), (17, 40), 1.11),
    (460, "sweep lr=3e-4", "dara", &[0], [3.1, 4.6, 4.1, 4.6], (14, 27), (15, 30), 1.04),
    (419, "vit-l16-finetune", "ana", &[1, 2], [16.8, 17.6, 16.1, 18.3], (10, 52), (16, 5), 1.14),
    (425, "gpt2-small-owt", "ben", &[1], [12.9, 13.5, 13.1, 13.9], (11, 40), (18, 30), 1.19),
    (440, "dlrm-criteo", "emil", &[2], [7.4, 7.8, 6.9, 8.2], (13, 10), (14, 58), 1.06),
    (444, "wgan-lsun", "dara", &[2], [5.2, 5.5, 5.6, 6.3], (13, 38), (16, 40), 1.09),
    (450, "distil-whisper", "ana", &[2], [7.3, 8.8, 5.4, 6.0], (14, 9), (15, 48), 1.11),
    (433, "swin-t-coco", "emil", &[3], [15.2, 19.5, 14.6, 16.8], (9, 40), (15, 20), 1.00),
    (448, "lstm-ptb", "ben", &[3], [4.0, 9.6, 3.8, 4.4], (13, 44), (15, 10), 1.00),
    (449, "mnist-ablation", "dara", &[3], [1.9, 4.7, 2.1, 2.6], (14, 2), (14, 50), 1.00),
];

/// A waiting task: id, name, user, GPUs, estimate, bound, hours and minutes waited, starts, ends, reason.
type Waiting = (
    u32,
    &'static str,
    &'static str,
    u32,
    [f64; 2],
    u32,
    Option<(u32, u32)>,
    Option<(u32, u32)>,
    &'static str,
);

#[rustfmt::skip] // One row a line.
const WAITING: [Waiting; 9] = [
    (451, "segformer-b5", "ana", 1, [21.4, 24.0], 134, Some((16, 5)), Some((20, 40)), "no GPU has 24.0 GiB free"),
    (452, "t5-small-xsum", "ben", 1, [7.6, 8.9], 72, Some((15, 5)), Some((17, 50)), "GPU 0 is 0.7 GiB short until 431 ends"),
    (453, "llama-7b-lora", "emil", 2, [31.0, 34.5], 111, Some((18, 30)), Some((23, 10)), "wants 2 GPUs at once; none has 34.5 GiB"),
    (454, "resnet152-bench", "chen", 1, [22.8, 25.1], 90, Some((16, 40)), Some((19, 40)), "wants a GPU to itself; all have tasks"),
    (455, "eval-gpt2", "ben", 1, [6.2, 6.9], 171, Some((18, 30)), Some((18, 55)), "waits for task 425 to end"),
    (456, "nightly-bench", "dara", 4, [18.0, 20.0], 330, Some((22, 0)), Some((23, 59)), "begins at 22:00"),
    (457, "mae-pretrain", "ana", 1, [28.3, 32.6], 262, None, None, "held by ana; release lets it go on"),
    (458, "gan-ablation", "emil", 1, [5.1, 6.0], 59, Some((14, 58)), Some((16, 15)), "group vision holds 96 of 96 GiB"),
    (459, "roberta-qa", "dara", 1, [9.9, 11.2], 45, Some((15, 10)), Some((17, 5)), "GPU 0 is 3.0 GiB short; GPU 1 is hot"),
];

fn running(row: &Running) -> (TaskView, Expected) {
    let (id, name, user, gpus, memory, started, ends, _) = *row;
    let [used, promised, estimate, bound] = memory.map(|gib| Some(bytes(gib)));
    let retried = id == 450;
    let task = TaskView {
        id,
        name: name.to_owned(),
        user: user.to_owned(),
        state: TaskState::Running,
        gpus: gpus.len() as u32,
        gpu_ids: gpus.to_vec(),
        submitted_s: at(started.0, started.1),
        started_s: Some(at(started.0, started.1)),
        estimate_bytes: estimate,
        bound_bytes: bound,
        promised_bytes: promised,
        used_bytes: used,
        peak_bytes: used.unwrap_or(0),
        attempts: if retried { 2 } else { 1 },
        ooms: u32::from(retried),
        ..TaskView::default()
    };
    let expected_end_s = Some(at(ends.0, ends.1));
    (task, Expected { id, expected_end_s, ..Expected::default() })
}

fn waiting(row: &Waiting) -> (TaskView, Expected) {
    let (id, name, user, gpus, memory, waited, starts, ends, reason) = *row;
    let held = id == 457;
    let task = TaskView {
        id,
        name: name.to_owned(),
        user: user.to_owned(),
        reason: Some(reason.to_owned()),
        reason_code: held.then_some(ReasonCode::Held),
        gpus,
        submitted_s: at(14, 32) - f64::from(waited * 60),
        estimate_bytes: Some(bytes(memory[0])),
        bound_bytes: Some(bytes(memory[1])),
        promised_bytes: Some(bytes(memory[1])),
        position: (!held).then_some(id - 450),
        ..TaskView::default()
    };
    let time = |when: Option<(u32, u32)>| when.map(|(hour, minute)| at(hour, minute));
    let basis = "as long as tasks of their kind ran before".to_owned();
    let (expected_start_s, expected_end_s) = (time(starts), time(ends));
    let expected = Expected { expected_basis: basis, ..Expected::default() };
    (task, Expected { id, expected_start_s, expected_end_s, ..expected })
}

fn sweep(index: u32) -> TaskView {
    TaskView {
        id: 461 + index,
        name: "sweep lr".to_owned(),
        user: "dara".to_owned(),
        array_id: Some(461),
        array_index: Some(index),
        reason: Some("1 of its array is at work, and 1 may be".to_owned()),
        gpus: 1,
        submitted_s: at(14, 20),
        estimate_bytes: Some(bytes(4.1)),
        bound_bytes: Some(bytes(4.6)),
        promised_bytes: Some(bytes(4.6)),
        position: Some(10 + index),
        ..TaskView::default()
    }
}

/// A GPU: SM, occupancy, DRAM, watts, degrees, verdict.
type Gpu = (f64, f64, f64, f64, f64, VerdictWord, &'static str);

#[rustfmt::skip] // One row a line.
const GPUS: [Gpu; 4] = [
    (0.71, 0.38, 0.34, 268.0, 61.0, VerdictWord::Open, "open: 8.2 GiB, 0.05 SM demand left"),
    (0.88, 0.52, 0.47, 351.0, 74.0, VerdictWord::Hot, "closed, hot: over 80 % for 12 min"),
    (0.76, 0.41, 0.44, 302.0, 68.0, VerdictWord::Full, "full: 0.3 left, 440 leaves 14:58"),
    (0.58, 0.31, 0.22, 219.0, 57.0, VerdictWord::Taken, "taken: 449 leaves 14:50"),
];

fn instances() -> Vec<InstanceView> {
    let instance = |profile: &str, start_slice, slices, gib, task| InstanceView {
        profile: profile.to_owned(),
        start_slice,
        slices,
        memory_bytes: bytes(gib),
        task: Some(task),
    };
    vec![
        instance("3g.20gb", 0, 4, 19.5, 433),
        instance("2g.10gb", 4, 2, 9.6, 448),
        instance("1g.5gb", 6, 1, 4.7, 449),
    ]
}

fn gpu(index: u32) -> GpuView {
    let (smact, smocc, drama, power, heat, word, text) = GPUS[index as usize];
    let mig = index == 3;
    let here = RUNNING.iter().filter(|row| row.3.contains(&index));
    let residents: Vec<ResidentView> = here
        .map(|&(id, name, user, gpus, memory, _, _, slowdown)| ResidentView {
            id,
            name: name.to_owned(),
            user: user.to_owned(),
            used_bytes: Some(bytes(memory[0])),
            promised_bytes: bytes(memory[1]),
            slowdown: Some(slowdown),
            gpus: gpus.len() as u32,
            instance: mig.then(|| match id {
                433 => "3g.20gb".to_owned(),
                448 => "2g.10gb".to_owned(),
                _ => "1g.5gb".to_owned(),
            }),
            ..ResidentView::default()
        })
        .collect();
    let foreign = ForeignView {
        pid: 88121,
        user: Some("guest".to_owned()),
        bytes: Some(bytes(3.2)),
        name: Some("jupyter".to_owned()),
    };
    let sum = |of: fn(&ResidentView) -> u64| residents.iter().map(of).sum::<u64>();
    let (used, promised) = (sum(|one| one.used_bytes.unwrap_or(0)), sum(|one| one.promised_bytes));
    GpuView {
        index,
        model: "A100-40GB".to_owned(),
        memory_total_bytes: bytes(40.0),
        memory_used_bytes: used,
        memory_promised_bytes: promised,
        smact,
        smocc: Some(smocc),
        drama: Some(drama),
        power_w: Some(power),
        power_limit_w: Some(400.0),
        temperature_c: Some(heat),
        sharing: if mig { "mig" } else { "mps" }.to_owned(),
        mig,
        instances: if mig { instances() } else { Vec::new() },
        foreign: if index == 1 { vec![foreign] } else { Vec::new() },
        verdict: VerdictView { word, text: text.to_owned(), until_s: None },
        residents,
        ..GpuView::default()
    }
}

fn why(task: TaskView) -> WhyView {
    let memory = |gpu: u32, have: f64, short: f64| GpuWhy {
        gpu,
        refusals: vec![format!("{short} GiB short")],
        rules: vec![RuleView {
            rule: "memory".to_owned(),
            have: Some(have * GIB),
            short: Some(short * GIB),
            text: format!("needs 24.0 GiB, {have} GiB available: {short} GiB short"),
            ..RuleView::default()
        }],
    };
    let other = |gpu: u32, text: &str| GpuWhy {
        gpu,
        refusals: vec![text.to_owned()],
        rules: vec![RuleView { text: text.to_owned(), ..RuleView::default() }],
    };
    WhyView {
        task,
        host: None,
        promised_bytes: None,
        summary: "no GPU would take it now".to_owned(),
        memory: MemoryView {
            memory_rule: Some("estimated: 21.4 GiB, at most 24.0, by history of 2 runs".to_owned()),
            ..MemoryView::default()
        },
        awaits: None,
        ahead: 0,
        gpus: vec![
            memory(0, 8.2, 15.8),
            other(1, "hot: SM activity 88 %, the limit is 80 %"),
            memory(2, 0.3, 23.7),
            other(3, "partitioned, largest free instance 0 GiB"),
        ],
    }
}

/// Everything as the mocks show it, with the marker on 451.
pub(super) fn mock() -> App {
    let mut app = App::new(day_clock);
    let mut tasks: Vec<TaskView> = Vec::new();
    let mut expected: Vec<Expected> = Vec::new();
    for (task, when) in RUNNING.iter().map(running).chain(WAITING.iter().map(waiting)) {
        tasks.push(task);
        expected.push(when);
    }
    tasks.extend((0..14).map(sweep));
    let status = StatusView {
        host: "gpu1".to_owned(),
        emulated: true,
        user: "ana".to_owned(),
        ooms_today: 2,
        recovered_today: 2,
        policy: PolicyView {
            queue: "best-effort".to_owned(),
            place: "least-interference".to_owned(),
            share: "mps".to_owned(),
            ..PolicyView::default()
        },
        ..StatusView::default()
    };
    let now_s = at(14, 32) + 6.0;
    update(&mut app, Msg::Tick(now_s));
    let gpus = (0..4).map(gpu).collect();
    update(&mut app, Msg::Snapshot { status: Box::new(status), gpus, tasks });
    update(&mut app, Msg::Expected(expected));
    for index in 0..4 {
        let level = |n: u32| GPUS[index as usize].0 + f64::from((n * 7 + index) % 5) * 0.04 - 0.08;
        let past = (0..60).map(|n| (now_s - 1800.0 + f64::from(n) * 30.0, level(n / 5))).collect();
        update(&mut app, Msg::Activity(index, past));
    }
    app.selected = Some(451);
    app.why = Some(why(app.data.tasks[&451].clone()));
    app.connection = Connection::Live;
    app
}

/// The output of task 450.
pub(super) fn log() -> Log {
    let lines = [
        "14:09:04 resuming from checkpoints/step-690.pt",
        "14:09:12 step  690/5200  loss 0.8421  0.75 it/s",
        "14:14:00 step  909/5200  loss 0.7977  0.76 it/s",
        "14:18:52 warning: 212 samples longer than 30 s were cut",
    ];
    Log { id: 450, attempt: 2, lines: lines.map(str::to_owned).to_vec() }
}

/// What ran on GPU 0, and is expected.
pub(super) fn timeline() -> coloc_api::view::TimelineAnswer {
    use coloc_api::view::{TimelineAnswer, TimelineAttempt, TimelineWaiting};
    let attempt =
        |task, name: &str, from, to: Option<f64>, predicted, outcome: Option<&str>, ooms| {
            TimelineAttempt {
                task,
                name: name.to_owned(),
                user: "ana".to_owned(),
                number: 1,
                gpus: vec![0],
                started_s: from,
                ended_s: to,
                predicted_end_s: predicted,
                outcome: outcome.map(str::to_owned),
                ooms,
                ..TimelineAttempt::default()
            }
        };
    TimelineAnswer {
        schema: 1,
        from_s: at(12, 32),
        to_s: at(16, 32),
        now_s: at(14, 32),
        attempts: vec![
            attempt(412, "resnet50-imagenet", at(11, 5), None, Some(at(16, 20)), None, 0),
            attempt(430, "wav2vec", at(12, 40), Some(at(13, 0)), None, Some("out_of_memory"), 1),
            attempt(429, "broken", at(13, 0), Some(at(13, 30)), None, Some("failed"), 0),
        ],
        waiting: vec![TimelineWaiting {
            task: 452,
            name: "t5-small-xsum".to_owned(),
            user: "ben".to_owned(),
            gpus: vec![0],
            expected_start_s: Some(at(15, 5)),
            expected_end_s: Some(at(17, 50)),
        }],
        foreign: Vec::new(),
        truncated: false,
    }
}
