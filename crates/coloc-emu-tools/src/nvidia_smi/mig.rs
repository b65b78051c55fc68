//! `nvidia-smi mig`: profiles, placements, instances.

use super::{Arguments, selected, unknown};
use crate::tool::{Answer, ToolError, fleet, print};
use coloc_emu::fleet::{Gpu, MigDevice, State};
use coloc_emu::mig::{self, InstanceProfile};

/// What to do.
enum Action {
    ListProfiles,
    ListPlacements,
    ListInstances,
    ListCompute,
    ListComputeProfiles,
    Create { profiles: String, with_compute: bool },
    CreateCompute { profiles: Option<String> },
    DestroyInstances,
    DestroyCompute,
}

struct Request {
    action: Option<Action>,
    gpus: Option<String>,
    gi: Option<Vec<u32>>,
    ci: Option<Vec<u32>>,
}

pub(super) fn run(arguments: &mut Arguments) -> Answer {
    let request = parse(arguments)?;
    let action = request.action.as_ref().ok_or_else(|| unknown("mig"))?;
    let emulator = fleet()?;
    let mut state = emulator.lock()?;
    let mut lines = Vec::new();
    let mut done = Ok(());
    for gpu in selected(&state, request.gpus.as_deref())? {
        if !state.live_gpu(gpu)?.mig_enabled() && !matches!(action, Action::ListProfiles) {
            continue;
        }
        done = request.carry_out(&mut state, gpu, action, &mut lines);
        if done.is_err() {
            break;
        }
    }
    drop(state);
    if !lines.is_empty() {
        print(&lines.join("\n"))?;
    } else if done.is_ok() {
        return Err(ToolError::new(6, "No MIG-enabled devices found."));
    }
    done
}

fn parse(arguments: &mut Arguments) -> Result<Request, ToolError> {
    let mut request = Request { action: None, gpus: None, gi: None, ci: None };
    while let Some(argument) = arguments.next() {
        let action = match argument.as_str() {
            "-i" | "--id" => {
                request.gpus = Some(arguments.value("-i")?);
                continue;
            }
            "-gi" | "--gpu-instance-id" => {
                request.gi = Some(ids(&arguments.value("-gi")?)?);
                continue;
            }
            "-ci" | "--compute-instance-id" => {
                request.ci = Some(ids(&arguments.value("-ci")?)?);
                continue;
            }
            "-C" | "--default-compute-instance" => {
                if let Some(Action::Create { with_compute, .. }) = &mut request.action {
                    *with_compute = true;
                    continue;
                }
                return Err(unknown("-C"));
            }
            "-lgip" | "--list-gpu-instance-profiles" => Action::ListProfiles,
            "-lgipp" | "--list-gpu-instance-possible-placements" => Action::ListPlacements,
            "-lgi" | "--list-gpu-instances" => Action::ListInstances,
            "-lcip" | "--list-compute-instance-profiles" => Action::ListComputeProfiles,
            "-lci" | "--list-compute-instances" => Action::ListCompute,
            "-cgi" | "--create-gpu-instance" => {
                Action::Create { profiles: arguments.value("-cgi")?, with_compute: false }
            }
            "-cci" | "--create-compute-instance" => {
                Action::CreateCompute { profiles: arguments.optional() }
            }
            "-dgi" | "--destroy-gpu-instance" => Action::DestroyInstances,
            "-dci" | "--destroy-compute-instance" => Action::DestroyCompute,
            _ => return Err(unknown(&argument)),
        };
        request.action = Some(action);
    }
    Ok(request)
}

fn ids(text: &str) -> Result<Vec<u32>, ToolError> {
    let id = |part: &str| part.trim().parse().map_err(|_| unknown(part));
    text.split(',').map(id).collect()
}

impl Request {
    fn carry_out(
        &self,
        state: &mut State,
        gpu: u32,
        action: &Action,
        lines: &mut Vec<String>,
    ) -> Answer {
        match action {
            Action::ListProfiles => lines.extend(profiles(gpu, state.live_gpu(gpu)?)),
            Action::ListPlacements => lines.extend(placements(gpu, state.live_gpu(gpu)?)),
            Action::ListInstances => lines.extend(instances(gpu, state.live_gpu(gpu)?)?),
            Action::ListCompute => lines.extend(self.compute(gpu, state.live_gpu(gpu)?)?),
            Action::ListComputeProfiles => {
                let chosen = self.chosen(state.live_gpu(gpu)?);
                lines.extend(compute_profiles(gpu, state.live_gpu(gpu)?, &chosen)?);
            }
            Action::Create { profiles, with_compute } => {
                for profile in profiles.split(',') {
                    create(state, gpu, profile.trim(), *with_compute, lines)?;
                }
            }
            Action::CreateCompute { profiles } => {
                for gi in self.chosen(state.live_gpu(gpu)?) {
                    create_compute(state, gpu, gi, profiles.as_deref(), lines)?;
                }
            }
            Action::DestroyCompute => self.destroy_compute(state, gpu, lines)?,
            Action::DestroyInstances => {
                for gi in self.chosen(state.live_gpu(gpu)?) {
                    let what = format!("destroy GPU instance ID {gi:>2} from GPU {gpu:>2}");
                    state
                        .destroy_instance(gpu, gi)
                        .map_err(|error| ToolError::unable(&error, &what))?;
                    lines.push(format!(
                        "Successfully destroyed GPU instance ID {gi:>2} from GPU {gpu:>2}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn chosen(&self, gpu: &Gpu) -> Vec<u32> {
        self.gi.clone().unwrap_or_else(|| gpu.instance_ids())
    }

    fn destroy_compute(&self, state: &mut State, gpu: u32, lines: &mut Vec<String>) -> Answer {
        for gi in self.chosen(state.live_gpu(gpu)?) {
            for ci in state.live_gpu(gpu)?.compute_ids(gi)? {
                if self.ci.as_ref().is_some_and(|chosen| !chosen.contains(&ci)) {
                    continue;
                }
                let what = format!(
                    "compute instance ID {ci:>2} from GPU {gpu:>2} GPU instance ID {gi:>2}"
                );
                state
                    .destroy_compute(gpu, MigDevice { gi, ci })
                    .map_err(|error| ToolError::unable(&error, &format!("destroy {what}")))?;
                lines.push(format!("Successfully destroyed {what}"));
            }
        }
        Ok(())
    }

    fn compute(&self, index: u32, gpu: &Gpu) -> Result<Vec<String>, ToolError> {
        let mut lines = vec![
            "Compute instances:".to_owned(),
            header(&["GPU", "GPU instance", "Name", "Instance ID", "Slices"]),
        ];
        for mig in gpu.mig_devices() {
            if self.gi.as_ref().is_some_and(|chosen| !chosen.contains(&mig.gi)) {
                continue;
            }
            let slices = gpu.compute_slices(mig)?;
            let name = gpu.mig_name(mig)?;
            lines.push(cells(&[&index, &mig.gi, &name, &mig.ci, &slices]));
        }
        Ok(lines)
    }
}

fn header(names: &[&str]) -> String {
    let columns: Vec<&dyn std::fmt::Display> =
        names.iter().map(|name| name as &dyn std::fmt::Display).collect();
    cells(&columns)
}

fn cells(values: &[&dyn std::fmt::Display]) -> String {
    let texts = values.iter().map(|value| format!("{:<16}", value.to_string()));
    texts.collect::<String>().trim_end().to_owned()
}

fn profiles(index: u32, gpu: &Gpu) -> Vec<String> {
    let mut lines = vec![
        "GPU instance profiles:".to_owned(),
        header(&["GPU", "Name", "ID", "Free/Total", "Memory GiB", "SM"]),
    ];
    for profile in mig::profiles(gpu.model()) {
        let free = if gpu.mig_enabled() { gpu.remaining(&profile) } else { 0 };
        let sms = gpu.model().mig().map_or(0, |table| table.sms_per_slice);
        lines.push(cells(&[
            &index,
            &format!("MIG {}", profile.name()),
            &profile.id,
            &format!("{free}/{}", profile.most()),
            &format!("{:.2}", profile.memory().gib()),
            &(u32::from(profile.compute()) * sms),
        ]));
    }
    lines
}

fn placements(index: u32, gpu: &Gpu) -> Vec<String> {
    let line = |profile: InstanceProfile| {
        let starts: Vec<String> = profile.starts().iter().map(u8::to_string).collect();
        let what = if starts.len() == 1 { "Placement " } else { "Placements" };
        format!(
            "GPU {index:>2} Profile ID {:>2} {what}: {{{}}}:{}",
            profile.id,
            starts.join(","),
            profile.span()
        )
    };
    mig::profiles(gpu.model()).into_iter().map(line).collect()
}

/// A table as nvidia-smi draws it, which programs take apart at its bars.
fn instances(index: u32, gpu: &Gpu) -> Result<Vec<String>, ToolError> {
    let rule = format!("+{}+", "-".repeat(55));
    let mut lines = vec![
        rule.clone(),
        format!("| {:<54}|", "GPU instances:"),
        format!("| {:<54}|", "GPU   Name             Profile  Instance   Placement"),
        format!("| {:<54}|", "                         ID       ID       Start:Size"),
        format!("|{}|", "=".repeat(55)),
    ];
    for id in gpu.instance_ids() {
        let view = gpu.instance_view(id)?;
        let name = format!("MIG {}", view.profile.name());
        let place = format!("{}:{}", view.start, view.span);
        let row = format!("{index:>3}  {name:<18}{:>3}{id:>9}{place:>13}", view.profile.id);
        lines.push(format!("| {row:<54}|"));
        lines.push(rule.clone());
    }
    Ok(lines)
}

/// The compute instances that could be made in GPU instances.
fn compute_profiles(index: u32, gpu: &Gpu, chosen: &[u32]) -> Result<Vec<String>, ToolError> {
    let mut lines = vec![
        "Compute instance profiles:".to_owned(),
        header(&["GPU", "GPU instance", "Name", "Profile ID", "Free/Total", "SM"]),
    ];
    let sms = gpu.model().mig().map_or(0, |table| table.sms_per_slice);
    for &gi in chosen {
        let profile = gpu.instance_view(gi)?.profile;
        let all = u32::from(profile.compute());
        for slices in [1, 2, 3, 4, 7].into_iter().filter(|slices| *slices <= all) {
            let name = format!("MIG {}", profile.device_name(slices).trim_start_matches("MIG "));
            // The one that covers its instance is marked, as it is the default.
            let id = format!("{}{}", compute_id(slices), if slices == all { "*" } else { "" });
            let free = format!("{}/{}", gpu.compute_remaining(gi, slices)?, all / slices);
            lines.push(cells(&[&index, &gi, &name, &id, &free, &(slices * sms)]));
        }
    }
    Ok(lines)
}

/// NVML's number for a compute instance of so many slices.
fn compute_id(slices: u32) -> u32 {
    if slices == 7 { 4 } else { slices - 1 }
}

/// A profile by id or name, with a start after a colon if one is wanted.
fn wanted(gpu: &Gpu, text: &str) -> Result<(InstanceProfile, Option<u32>), ToolError> {
    let (name, start) = match text.split_once(':') {
        Some((name, start)) => (name, Some(start.trim().parse().map_err(|_| unknown(text))?)),
        None => (text, None),
    };
    let name = name.trim().trim_start_matches("MIG ").trim();
    let found = mig::profiles(gpu.model())
        .into_iter()
        .find(|profile| profile.id.to_string() == name || profile.name() == name);
    let found = found.ok_or_else(|| {
        ToolError::new(2, format!("Unable to find GPU instance profile {name:?}"))
    })?;
    Ok((found, start))
}

fn create(
    state: &mut State,
    gpu: u32,
    profile: &str,
    with_compute: bool,
    lines: &mut Vec<String>,
) -> Answer {
    let (profile, start) = wanted(state.live_gpu(gpu)?, profile)?;
    let what = format!("create a GPU instance on GPU {gpu:>2} using profile {}", profile.id);
    let gi = state
        .create_instance(gpu, profile.id, start)
        .map_err(|error| ToolError::unable(&error, &what))?;
    lines.push(format!(
        "Successfully created GPU instance ID {gi:>2} on GPU {gpu:>2} using profile MIG {} (ID {:>2})",
        profile.name(),
        profile.id
    ));
    if with_compute { create_compute(state, gpu, gi, None, lines) } else { Ok(()) }
}

/// Compute instances by their slices' ids (0 to 4); without any, one that covers the GPU instance.
fn create_compute(
    state: &mut State,
    gpu: u32,
    gi: u32,
    profiles: Option<&str>,
    lines: &mut Vec<String>,
) -> Answer {
    let all = u32::from(state.live_gpu(gpu)?.instance_view(gi)?.profile.compute());
    let slices: Vec<u32> = match profiles {
        None => vec![all],
        Some(list) => ids(list)?.into_iter().map(|id| if id == 4 { 7 } else { id + 1 }).collect(),
    };
    for slices in slices {
        let what = format!("create a compute instance on GPU {gpu:>2} GPU instance ID {gi:>2}");
        let ci = state
            .create_compute(gpu, gi, slices)
            .map_err(|error| ToolError::unable(&error, &what))?;
        let name = state.live_gpu(gpu)?.mig_name(MigDevice { gi, ci })?;
        let id = compute_id(slices);
        lines.push(format!(
            "Successfully created compute instance ID {ci:>2} on GPU {gpu:>2} GPU instance ID {gi:>2} using profile {name} (ID {id:>2})"
        ));
    }
    Ok(())
}
