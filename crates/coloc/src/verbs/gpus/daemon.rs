//! What a daemon says of its GPUs.

use super::{host, memory, or_dash, percent, render};
use crate::args::live::SocketArg;
use crate::error::CliError;
use crate::local_time::LocalTime;
use crate::output::table::listing;
use crate::output::visible::visible;
use crate::output::{Answer, print_text};
use crate::verbs::reserve::reserved;
use coloc_api::answer::Gpus;
use coloc_api::client::ClientError;
use coloc_api::view::{ForeignView, GpuView, HostView, ResidentView};
use coloc_gpu::process::{ProcessTable, TaskRoots};
use coloc_gpu::snapshot::{GpuSnapshot, Snapshot};
use coloc_model::{Bytes, Fraction, TaskId};
use serde_json::{Value, json};

/// What a daemon adds to what devices tell.
pub(super) const COLUMNS: [&str; 3] = ["PROMISED", "USER", "TASKS"];
/// The same in JSON.
const FIELDS: [&str; 15] = [
    "memory_promised_bytes",
    "tasks",
    "residents",
    "lost",
    "drained",
    "drain_reason",
    "drained_s",
    "drained_by",
    "faults",
    "pool",
    "reserved_for",
    "reserved_until_s",
    "reserve_reason",
    "reserved_by",
    "foreign",
];

/// A daemon's answer.
pub(super) struct Told {
    place: String,
    gpus: Gpus,
}

/// Asks the daemon; `None` if there is none here.
pub(super) fn ask(socket: &SocketArg) -> Result<Option<Told>, CliError> {
    let mut client = match socket.connect() {
        Ok(client) => client,
        Err(CliError::Client(ClientError::Unreachable { .. })) => return Ok(None),
        Err(error) => return Err(error),
    };
    let gpus = client.gpus()?;
    Ok(Some(Told { place: client.address().to_string(), gpus }))
}

impl Told {
    /// Whether some of the devices are the daemon's.
    pub(super) fn has_some_of(&self, devices: &Snapshot) -> bool {
        devices.gpus.iter().any(|gpu| self.of(gpu).is_some())
    }

    fn of(&self, device: &GpuSnapshot) -> Option<&GpuView> {
        let uuid = device.uuid.as_ref()?;
        self.gpus.gpus.iter().find(|gpu| gpu.uuid == uuid.as_str())
    }

    /// What the processes of tasks can be known by.
    pub(super) fn roots(&self) -> Vec<TaskRoots> {
        let table = ProcessTable::default();
        let residents = self.gpus.gpus.iter().flat_map(|gpu| &gpu.residents);
        let root = |(task, leader)| {
            let leader_started = table.started(leader)?;
            Some(TaskRoots { task: TaskId(task), cgroup: None, leader, leader_started })
        };
        residents.filter_map(|task| Some((task.id, task.leader_pid?))).filter_map(root).collect()
    }

    pub(super) fn cells(&self, device: &GpuSnapshot) -> Vec<String> {
        match self.of(device) {
            Some(gpu) => vec![promised(gpu), users(gpu), tasks(gpu)],
            None => vec!["-".to_owned(), "-".to_owned(), "not the daemon's".to_owned()],
        }
    }

    /// What comes after a device's name.
    pub(super) fn state(&self, device: &GpuSnapshot) -> String {
        self.of(device).map(state).unwrap_or_default()
    }

    /// A line for each GPU that is drained, reserved, or faulty.
    fn troubles(&self) -> Option<String> {
        let reservation = |gpu: &GpuView| (!gpu.reserved_for.is_empty()).then(|| reserved(gpu));
        let lines = self.gpus.gpus.iter();
        let lines = lines.flat_map(|gpu| [trouble(gpu), reservation(gpu), foreign(gpu)]);
        let lines: Vec<String> = lines.flatten().collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Prints it alone.
    pub(super) fn print(&self, json: bool) -> Result<(), CliError> {
        if json {
            #[derive(serde::Serialize)]
            struct Body<'a> {
                told_by: &'static str,
                emulated: bool,
                host: HostView,
                gpus: &'a [Value],
            }
            let Gpus { emulated, gpus, host, .. } = &self.gpus;
            let gpus: Vec<Value> = gpus.iter().map(documented).collect::<Result<_, _>>()?;
            let (told_by, emulated, host) = ("daemon", *emulated, *host);
            let body = Body { told_by, emulated, host, gpus: &gpus };
            return Answer { body: &body, wall_s: None }.print();
        }
        let row = |gpu: &GpuView| {
            vec![
                format!("{:<3} {}{}", gpu.index, visible(&gpu.model), state(gpu)),
                memory(Some(Bytes(gpu.memory_used_bytes)), Some(Bytes(gpu.memory_total_bytes))),
                percent(Some(Fraction::saturating(gpu.smact))),
                or_dash(gpu.power_w, |watts| format!("{watts:.0} W")),
                or_dash(gpu.temperature_c, |celsius| format!("{celsius:.0} °C")),
                promised(gpu),
                users(gpu),
                tasks(gpu),
            ]
        };
        let own = ["GPU", "MEMORY", "SMACT", "POWER", "TEMP"];
        let header: Vec<&str> = own.into_iter().chain(COLUMNS).collect();
        let mut text = listing(&header, self.gpus.gpus.iter().map(row), &[4, 3, 5, 6]);
        if let Some(host) = host::line(&self.gpus.host) {
            text.push_str(&format!("\n\n{host}"));
        }
        if let Some(troubles) = self.troubles() {
            text.push_str(&format!("\n\n{troubles}"));
        }
        if self.gpus.emulated {
            text.push_str("\n\nThese GPUs are emulated: no figure was measured.");
        }
        print_text(&format!("{text}\n\nTold by the daemon at {}.", self.place))
    }

    /// Prints it with what the devices tell.
    pub(super) fn print_with(&self, devices: &Snapshot, json: bool) -> Result<(), CliError> {
        if !json {
            let mut parts = vec![render(devices, Some(self))];
            parts.extend(host::line(&self.gpus.host));
            parts.extend(self.troubles());
            let text = parts.join("\n\n");
            let told = format!("Read from the devices; tasks by the daemon at {}.", self.place);
            return print_text(&format!("{text}\n\n{told}"));
        }
        let unreadable = |error: serde_json::Error| CliError::Refused(error.to_string());
        let mut body = serde_json::to_value(devices).map_err(unreadable)?;
        body["told_by"] = "devices and daemon".into();
        body["host"] = serde_json::to_value(self.gpus.host).map_err(unreadable)?;
        for (device, shown) in
            devices.gpus.iter().zip(body["gpus"].as_array_mut().into_iter().flatten())
        {
            let told: Option<Value> =
                self.of(device).map(serde_json::to_value).transpose().map_err(unreadable)?;
            for field in FIELDS {
                shown[field] = told.as_ref().map_or(Value::Null, |told| told[field].clone());
            }
        }
        Answer { body: &body, wall_s: None }.print()
    }
}

/// ` [pool], drained`, after a GPU's name.
fn state(gpu: &GpuView) -> String {
    let reserved = !gpu.reserved_for.is_empty();
    let said = [(gpu.lost, ", lost"), (gpu.drained, ", drained"), (reserved, ", reserved")];
    let said: String = said.into_iter().filter(|(so, _)| *so).map(|(_, word)| word).collect();
    match gpu.pool.is_empty() {
        true => said,
        false => format!(" [{}]{said}", visible(&gpu.pool.join(", "))),
    }
}

/// Why a GPU is drained, and what is wrong with it.
pub(in crate::verbs) fn trouble(gpu: &GpuView) -> Option<String> {
    let faults = visible(&gpu.faults.join(", ")).into_owned();
    let drained = gpu.drained.then(|| {
        let reason = visible(gpu.drain_reason.as_deref().unwrap_or_default()).into_owned();
        let by = gpu.drained_by.as_ref().map_or(String::new(), |by| format!(" by {}", visible(by)));
        let since = gpu.drained_s.and_then(|at| LocalTime::of(at as i64));
        let since = since.map_or(String::new(), |since| format!(" since {since}"));
        format!("GPU {} is drained{by}{since}: {reason}", gpu.index)
    });
    match (drained, faults.is_empty()) {
        (Some(drained), true) => Some(drained),
        (Some(drained), false) => Some(format!("{drained} (now: {faults})")),
        (None, false) => Some(format!("GPU {} takes tasks, but {faults}", gpu.index)),
        (None, true) => None,
    }
}

/// A GPU with the fields of `coloc gpus --json` as they are without a daemon, null for what the daemon does not tell.
fn documented(gpu: &GpuView) -> Result<Value, CliError> {
    let unreadable = |error: serde_json::Error| CliError::Refused(error.to_string());
    let mut shown = serde_json::to_value(gpu).map_err(unreadable)?;
    let (name, utilization, clock) = (&gpu.model, gpu.gract, gpu.clock_mhz);
    let process = |task: &ResidentView| {
        json!({ "pid": task.leader_pid, "user": task.user, "command": null, "memory_bytes": task.used_bytes,
                "gpu_instance": task.instance, "task": task.id, "foreign": false })
    };
    let foreign = |other: &ForeignView| {
        json!({ "pid": other.pid, "user": other.user, "command": other.name, "memory_bytes": other.bytes,
                "gpu_instance": null, "task": null, "foreign": true })
    };
    let processes = gpu.residents.iter().map(process).chain(gpu.foreign.iter().map(foreign));
    let processes: Vec<Value> = processes.collect();
    let more = json!({
        "name": name, "utilization": utilization, "sm_clock_mhz": clock, "processes": processes,
        "pci_bus_id": null, "compute_capability": null, "memory_reserved_bytes": null,
        "memory_utilization": null, "memory_clock_mhz": null, "error": null,
    });
    if let (Some(shown), Value::Object(more)) = (shown.as_object_mut(), more) {
        // What the daemon tells by itself is what counts.
        more.into_iter().for_each(|(field, value)| {
            shown.entry(field).or_insert(value);
        });
    }
    Ok(shown)
}

/// The users of the tasks on a GPU, each once.
fn users(gpu: &GpuView) -> String {
    let mut users: Vec<&str> = gpu.residents.iter().map(|task| task.user.as_str()).collect();
    users.sort_unstable();
    users.dedup();
    if users.is_empty() { "-".to_owned() } else { visible(&users.join(", ")).into_owned() }
}

/// `GPU 0: process 4711 of bob (python) holds 3.0 GiB and is not a task`.
fn foreign(gpu: &GpuView) -> Option<String> {
    let each = gpu.foreign.iter().map(|process| {
        let user = process.user.as_deref().map_or("an unknown user".into(), visible);
        let name = process.name.as_deref().map(|name| format!(" ({})", visible(name)));
        let held = process.bytes.map(|held| format!(" holds {:.1} GiB and", Bytes(held).gib()));
        let (name, held) = (name.unwrap_or_default(), held.unwrap_or_default());
        format!("GPU {}: process {} of {user}{name}{held} is not a task", gpu.index, process.pid)
    });
    let lines: Vec<String> = each.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn promised(gpu: &GpuView) -> String {
    format!("{:.1} GiB", Bytes(gpu.memory_promised_bytes).gib())
}

/// `7 train.py, 9 eval`.
fn tasks(gpu: &GpuView) -> String {
    let each = gpu.residents.iter().map(|task| format!("{} {}", task.id, visible(&task.name)));
    let each = each.collect::<Vec<_>>().join(", ");
    if each.is_empty() { "-".to_owned() } else { each }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields that docs/monitoring.md names.
    #[test]
    fn a_daemon_tells_every_documented_field() {
        let resident = ResidentView { id: 7, user: "ada".into(), ..ResidentView::default() };
        let gpu = GpuView {
            model: "A100-40GB".into(),
            clock_mhz: Some(1410.0),
            residents: vec![resident],
            ..GpuView::default()
        };
        let shown = documented(&gpu).expect("JSON");
        let page = include_str!("../../../../../docs/monitoring.md");
        let fields =
            page.split("Of each GPU: ").nth(1).and_then(|rest| rest.split("`null`").next());
        // The fields of `mig` and of processes stand in brackets behind them.
        let mut depth = 0;
        let plain: String = fields
            .expect("the page lists them")
            .chars()
            .filter(|&char| {
                depth += i32::from(char == '(') - i32::from(char == ')');
                depth == 0
            })
            .collect();
        let named: Vec<&str> = plain.split('`').skip(1).step_by(2).collect();
        assert!(named.len() > 20, "{named:?}");
        for field in named {
            assert!(shown.get(field).is_some(), "{field}");
        }
        assert_eq!((&shown["name"], &shown["sm_clock_mhz"]), (&json!("A100-40GB"), &json!(1410.0)));
        assert_eq!(shown["processes"][0]["task"], 7);
        assert_eq!(users(&gpu), "ada");
    }
}
