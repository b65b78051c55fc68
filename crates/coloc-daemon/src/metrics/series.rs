//! The series of coloc itself, in base units.

use super::counters::{Counters, OfUser};
use super::exporter::{Edge, Names};
use super::writer::{Labels, Writer};
use crate::owner::{GpuNumbers, Metrics, TaskNumbers};
use crate::record::Uid;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Users who have no series of their own.
const OTHERS: &str = "(others)";

fn yes(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

fn user_label(user: Option<Uid>, names: &Names) -> (&'static str, String) {
    ("user", user.map_or_else(|| OTHERS.to_owned(), |user| names.of(user)))
}

/// Writes all of them.
pub(super) fn write(
    to: &mut Writer<'_>,
    seen: &Metrics,
    edge: &Edge,
    names: &Names,
) -> fmt::Result {
    daemon(to, seen, edge)?;
    queue(to, seen, names)?;
    of_users(to, &seen.counters, names)?;
    decisions(to, seen)?;
    gpus(to, &seen.gpus)?;
    tasks(to, seen, names)?;
    health(to, seen, edge)
}

fn daemon(to: &mut Writer<'_>, seen: &Metrics, edge: &Edge) -> fmt::Result {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    to.gauges("coloc_build_info", "The version of the daemon, as a label", [(version, 1.0)])?;
    to.gauge(
        "coloc_emulated",
        "1 if the GPUs are emulated: then no figure of them was measured",
        yes(edge.emulated),
    )?;
    to.gauge(
        "coloc_time_scale_ratio",
        "Seconds that pass for tasks in one second",
        seen.time_scale,
    )?;
    to.gauge(
        "coloc_start_time_seconds",
        "When the daemon began, in seconds since 1970",
        edge.began_s,
    )?;
    to.gauge(
        "coloc_draining",
        "1 while nothing new is started because an administrator wants it so",
        yes(seen.draining),
    )
}

fn queue(to: &mut Writer<'_>, seen: &Metrics, names: &Names) -> fmt::Result {
    // Users who have no series of their own are one, whatever their names.
    let own = |user: Uid| Some(user).filter(|&user| seen.counters.knows(user) || names.has_room());
    let mut tasks: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for (&(user, state), count) in &seen.tasks {
        *tasks.entry((user_label(own(user), names).1, state.name())).or_default() += count;
    }
    let series = tasks.into_iter().map(|((user, state), count)| {
        (vec![("state", state.to_owned()), ("user", user)], count as f64)
    });
    to.gauges("coloc_tasks", "Tasks that have not ended, by state and user", series)?;
    let mut held: BTreeMap<String, u64> = BTreeMap::new();
    for (&user, count) in &seen.held {
        *held.entry(user_label(own(user), names).1).or_default() += count;
    }
    let series = held.into_iter().map(|(user, count)| (vec![("user", user)], count as f64));
    to.gauges("coloc_tasks_held", "Tasks among them that are held, by user", series)
}

fn of_users(to: &mut Writer<'_>, counters: &Counters, names: &Names) -> fmt::Result {
    let label = |user| vec![user_label(user, names)];
    let waits = counters.users().map(|(user, of)| (label(user), &of.waits));
    to.histograms(
        "coloc_task_wait_seconds",
        "Time from submission to the first start, by the world's clock",
        waits,
    )?;
    let ended = counters.users().flat_map(|(user, of)| {
        let of_state = move |(state, count): (&&'static str, &u64)| {
            let labels: Labels = vec![("state", (*state).to_owned()), user_label(user, names)];
            (labels, *count as f64)
        };
        of.ended.iter().map(of_state)
    });
    to.counters("coloc_tasks_ended", "Tasks that ended, by how and by user", ended)?;
    let each = |count: fn(&OfUser) -> u64| {
        counters.users().map(move |(user, of)| (label(user), count(of) as f64))
    };
    to.counters(
        "coloc_out_of_memory",
        "Times that a task ran out of GPU memory",
        each(|of| of.ooms),
    )?;
    to.counters(
        "coloc_recovered",
        "Tasks that ran out of GPU memory and completed all the same",
        each(|of| of.recovered),
    )?;
    to.counters("coloc_preemptions", "Times that a task was preempted", each(|of| of.preemptions))
}

fn decisions(to: &mut Writer<'_>, seen: &Metrics) -> fmt::Result {
    let passes = &seen.passes;
    to.counter(
        "coloc_scheduling_passes",
        "Times that the scheduler looked at the queue",
        passes.passes as f64,
    )?;
    to.counter(
        "coloc_decisions_started",
        "Tasks that the scheduler decided to start",
        passes.started as f64,
    )?;
    let refused =
        passes.refused().map(|(rule, count)| (vec![("rule", rule.to_owned())], count as f64));
    to.counters(
        "coloc_refusals",
        "Times that a GPU was refused to a task, by the first rule that said no",
        refused,
    )?;
    to.counter("coloc_launches", "Attempts that were started", seen.counters.launches as f64)?;
    to.counter(
        "coloc_launch_failures",
        "Attempts that could not be started",
        seen.counters.launch_failures as f64,
    )?;
    to.histograms(
        "coloc_estimate_ratio",
        "Estimated GPU memory of ended tasks over the most that was seen: 1 is right, below 1 is too little",
        [(Labels::new(), &seen.counters.estimates)],
    )?;
    to.counter(
        "coloc_estimates_within_bound",
        "Ended tasks that stayed below the bound of their estimate",
        seen.counters.within_bound as f64,
    )
}

fn gpus(to: &mut Writer<'_>, gpus: &[GpuNumbers]) -> fmt::Result {
    let each = |value: fn(&GpuNumbers) -> Option<f64>| {
        gpus.iter().filter_map(move |gpu| {
            Some((vec![("gpu", gpu.index.to_string()), ("UUID", gpu.uuid.clone())], value(gpu)?))
        })
    };
    let models = gpus.iter().map(|gpu| {
        let labels = [
            ("gpu", gpu.index.to_string()),
            ("UUID", gpu.uuid.clone()),
            ("model", gpu.model.clone()),
        ];
        (labels.to_vec(), 1.0)
    });
    to.gauges("coloc_gpu_info", "The model of each GPU as schedulers know it, as a label", models)?;
    to.gauges(
        "coloc_gpu_memory_bytes",
        "Memory of the GPU",
        each(|gpu| Some(gpu.capacity as f64)),
    )?;
    to.gauges(
        "coloc_gpu_memory_promised_bytes",
        "Memory that is promised to tasks",
        each(|gpu| Some(gpu.promised as f64)),
    )?;
    to.gauges(
        "coloc_gpu_memory_used_bytes",
        "Memory that is in use, by tasks and others",
        each(|gpu| Some(gpu.sample.as_ref()?.signal().used.0 as f64)),
    )?;
    to.gauges(
        "coloc_gpu_memory_foreign_bytes",
        "Memory that processes hold which are not tasks",
        each(|gpu| Some(gpu.foreign as f64).filter(|_| gpu.sample.is_some())),
    )?;
    to.gauges("coloc_gpu_tasks", "Tasks on the GPU", each(|gpu| Some(gpu.residents as f64)))?;
    to.gauges(
        "coloc_gpu_sm_demand_ratio",
        "SM demand that is expected of the tasks on it",
        each(|gpu| Some(gpu.sm_demand)),
    )?;
    to.gauges(
        "coloc_gpu_lost",
        "1 if the GPU fell off the bus or its driver is gone",
        each(|gpu| Some(yes(gpu.lost))),
    )?;
    to.gauges(
        "coloc_gpu_drained",
        "1 if the GPU takes nothing new",
        each(|gpu| Some(yes(gpu.drained))),
    )
}

fn tasks(to: &mut Writer<'_>, seen: &Metrics, names: &Names) -> fmt::Result {
    let each = |value: fn(&TaskNumbers) -> Option<f64>| {
        seen.on_gpus.iter().filter_map(move |task| {
            let labels = vec![
                ("task", task.id.to_string()),
                ("name", task.name.clone()),
                user_label(Some(task.user), names),
                ("gpu", task.gpu.to_string()),
            ];
            Some((labels, value(task)?))
        })
    };
    to.gauges(
        "coloc_task_memory_promised_bytes",
        "Memory of a GPU that is promised to a task on it",
        each(|task| Some(task.promised as f64)),
    )?;
    to.gauges(
        "coloc_task_memory_used_bytes",
        "Memory of a GPU that a task on it holds",
        each(|task| task.used.map(|used| used as f64)),
    )?;
    to.gauges(
        "coloc_task_start_time_seconds",
        "When the attempt began, in seconds since 1970",
        each(|task| task.started_s),
    )?;
    let mut told = BTreeSet::new();
    let energy = seen.on_gpus.iter().filter(|task| told.insert(task.id)).filter_map(|task| {
        let of = [("task", task.id.to_string()), ("name", task.name.clone())];
        let labels = of.into_iter().chain([user_label(Some(task.user), names)]).collect();
        Some((labels, task.energy_j?))
    });
    to.counters(
        "coloc_task_energy_joules",
        "Energy of its GPUs that is laid to a task, over all attempts",
        energy,
    )?;
    to.gauge(
        "coloc_tasks_left_out",
        "Tasks on GPUs that have no series of their own: only the largest do",
        seen.left_out as f64,
    )
}

fn health(to: &mut Writer<'_>, seen: &Metrics, edge: &Edge) -> fmt::Result {
    let counters = &seen.counters;
    to.gauge(
        "coloc_journal_writable",
        "0 while the journal cannot be written: then nothing new is taken or started",
        yes(!seen.disk_full),
    )?;
    to.histograms(
        "coloc_journal_write_seconds",
        "Time that a write of the journal took, its sync included",
        [(Labels::new(), &counters.journal_writes)],
    )?;
    to.counter(
        "coloc_journal_write_failures",
        "Writes of the journal that failed",
        counters.journal_failures as f64,
    )?;
    if let Some(bytes) = edge.journal_bytes {
        to.gauge("coloc_journal_size_bytes", "Size of the journal's file", bytes as f64)?;
    }
    to.histograms(
        "coloc_owner_batch_seconds",
        "Time that the owner of all state was at work on one batch of inputs",
        [(Labels::new(), &counters.batches)],
    )?;
    to.gauge(
        "coloc_monitor_silent_seconds",
        "Time since the monitor last told anything of the GPUs",
        seen.monitor_silent.as_secs_f64(),
    )?;
    let classes = edge
        .requests
        .iter()
        .map(|(class, count)| (vec![("class", (*class).to_owned())], *count as f64));
    to.counters(
        "coloc_api_requests",
        "Requests that were answered, by the class of the status",
        classes,
    )?;
    to.histograms(
        "coloc_api_request_seconds",
        "Time until a request was answered; streams count until they begin",
        [(Labels::new(), &edge.request_seconds)],
    )?;
    to.gauge("coloc_api_listeners", "Clients that listen to events", edge.listeners as f64)?;
    super::process::write(to)
}
