//! `scontrol show job`, `show hostnames` and the like.

use super::host_name;
use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::{CliError, UsageError};
use crate::local_time::LocalTime;
use crate::output::print_text;
use crate::output::visible::visible;
use crate::parse::states::slurms;
use crate::slurm::known_keys;
use crate::verbs::queue::clock;
use coloc_api::moment::Moment;
use coloc_api::view::TaskDetail;
use coloc_model::TaskState;
use std::ffi::OsString;

/// What can be asked.
const KNOWN: &str = "show job|hostnames|hostlist|node|partition, hold, release, requeue, suspend, resume, update, wait_job, ping, version";
/// No list of hosts has more.
const MOST_HOSTS: usize = 65_536;

pub(super) fn run(socket: &SocketArg, words: &[OsString]) -> Result<(), CliError> {
    let words: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let one_line = words.iter().any(|word| matches!(word.as_str(), "-o" | "--oneliner"));
    let plain: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    let wrong = |what: &str, why: String| UsageError::flag(format!("scontrol {what}"), why).into();
    match plain.as_slice() {
        ["show", "hostname" | "hostnames", rest @ ..] => {
            let hosts = hosts(rest).map_err(|why| wrong("show hostnames", why))?;
            print_text(&hosts.join("\n"))
        }
        ["show", "hostlist" | "hostlistsorted", list] => print_text(list),
        ["show", "job" | "jobs" | "jobid", rest @ ..] => show_jobs(socket, rest, one_line),
        ["show", word] if word.starts_with("job=") || word.starts_with("jobid=") => {
            let (_, ids) = word.split_once('=').unwrap_or_default();
            show_jobs(socket, &[ids], one_line)
        }
        ["show", "node" | "nodes", ..] => super::sinfo::show_node(socket),
        ["show", "partition" | "partitions", ..] => super::sinfo::show_partition(socket),
        ["ping"] => {
            socket.connect()?;
            print_text("Slurmctld(primary) at coloc is UP")
        }
        ["version"] => print_text(concat!("coloc ", env!("CARGO_PKG_VERSION"))),
        ["update", ..] => Err(wrong(
            "update",
            format!("expected JobId=7 and some of {}, such as TimeLimit=2:00:00", known_keys()),
        )),
        [other, ..] => Err(wrong(other, format!("is not known; there are {KNOWN}"))),
        [] => Err(wrong("", format!("what is to be done? There are {KNOWN}"))),
    }
}

/// The hosts of lists such as `gpu[1-3,7],login`, or of the task's own list.
fn hosts(lists: &[&str]) -> Result<Vec<String>, String> {
    let own = std::env::var("SLURM_JOB_NODELIST").ok();
    let lists = match (lists, &own) {
        ([], Some(own)) => vec![own.as_str()],
        ([], None) => return Err("name a list such as gpu[1-3], or ask within a task".to_owned()),
        (lists, _) => lists.to_vec(),
    };
    let mut all = Vec::new();
    for list in lists {
        for part in parts(list) {
            expand(part, &mut all)?;
        }
    }
    Ok(all)
}

/// The parts between commas that stand outside of brackets.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut all) = (0u32, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                all.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(&list[from..]);
    all.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// `gpu[01-03]-a` is three hosts.
fn expand(part: &str, all: &mut Vec<String>) -> Result<(), String> {
    let fail = || format!("{part:?} is no list of hosts: expected one such as gpu[1-3,7]");
    let Some((before, rest)) = part.split_once('[') else {
        if part.contains(']') {
            return Err(fail());
        }
        all.push(part.to_owned());
        return Ok(());
    };
    let (numbers, after) = rest.split_once(']').ok_or_else(fail)?;
    for range in numbers.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (u64, u64) = first.parse().ok().zip(last.parse().ok()).ok_or_else(fail)?;
        if low > high || (high - low) as usize >= MOST_HOSTS || all.len() > MOST_HOSTS {
            return Err(fail());
        }
        let width = first.len();
        for number in low..=high {
            expand(&format!("{before}{number:0width$}{after}"), all)?;
        }
    }
    Ok(())
}

fn show_jobs(socket: &SocketArg, ids: &[&str], one_line: bool) -> Result<(), CliError> {
    let mut client = socket.connect()?;
    let ids = match ids {
        [] => client.list(false, 0.0)?.tasks.iter().map(|task| task.id).collect(),
        ids => {
            let parse = |text: &str| {
                text.parse::<Selection>().map_err(|why| UsageError::flag("scontrol show job", why))
            };
            let wishes: Vec<Selection> =
                ids.iter().flat_map(|ids| ids.split(',')).map(parse).collect::<Result<_, _>>()?;
            resolve(&mut client, &wishes)?
        }
    };
    let mut texts = Vec::new();
    for id in ids {
        let lines = lines(&client.show(id)?);
        texts.push(if one_line { lines.join(" ") } else { lines.join("\n   ") });
    }
    match texts.is_empty() {
        true => print_text("No jobs in the system"),
        false => print_text(&texts.join(if one_line { "\n" } else { "\n\n" })),
    }
}

/// What scontrol tells of a job, as far as there is such a thing.
fn lines(detail: &TaskDetail) -> Vec<String> {
    let task = &detail.task;
    let moment = |at: Option<f64>| {
        let known = at.and_then(|at| LocalTime::of(at as i64));
        known.map_or_else(|| "Unknown".to_owned(), |at| at.to_string())
    };
    let ended = task.ended_s.unwrap_or_else(|| Moment::now().secs());
    let ran = task.started_s.filter(|_| task.state != TaskState::Pending);
    let limit = task.time_limit_s.map_or_else(|| "UNLIMITED".to_owned(), clock);
    let host = host_name();
    let place = if task.state.is_on_gpus() || task.ended_s.is_some() { &*host } else { "" };
    let (copies, cpus) = (detail.ntasks.unwrap_or(1), detail.cpus.unwrap_or(1).max(1));
    let memory = detail.host_mem_bytes.map_or(String::new(), |m| format!("mem={}M,", m >> 20));
    let array = task.array_id.zip(task.array_index);
    let array = array.map(|(id, index)| format!(" ArrayJobId={id} ArrayTaskId={index}"));
    let command: Vec<_> = detail.command.iter().map(|word| word.to_string_lossy()).collect();
    let mut lines = vec![
        format!("JobId={} JobName={}{}", task.id, visible(&task.name), array.unwrap_or_default()),
        format!("UserId={} Priority={}", visible(&task.user), task.priority),
        format!(
            "JobState={} Reason={}",
            slurms(task.state).to_uppercase(),
            visible(task.reason.as_deref().unwrap_or("None"))
        ),
        format!(
            "Requeue=1 Restarts={} ExitCode={}",
            task.attempts.saturating_sub(1),
            exit(task.exit_code)
        ),
        format!("RunTime={} TimeLimit={limit}", clock(ran.map_or(0.0, |began| ended - began))),
        format!(
            "SubmitTime={} StartTime={} EndTime={}",
            moment(Some(task.submitted_s)),
            moment(task.started_s),
            moment(end_of(detail))
        ),
        format!("Partition=coloc NodeList={place} BatchHost={place}"),
        format!("NumNodes=1 NumCPUs={cpus} NumTasks={copies} CPUs/Task={}", (cpus / copies).max(1)),
        format!("TRES=cpu={cpus},{memory}node=1,gres/gpu={}", task.gpus),
        format!("Command={}", visible(&command.join(" "))),
        format!("WorkDir={}", visible(&detail.directory.to_string_lossy())),
        format!("StdOut={}", visible(&detail.log)),
    ];
    if !task.gpu_ids.is_empty() {
        let gpus: Vec<String> = task.gpu_ids.iter().map(u32::to_string).collect();
        lines.push(format!("GRES=gpu:{}(IDX:{})", task.gpu_ids.len(), gpus.join(",")));
    }
    lines
}

/// When it ended, or when its time limit will end it.
fn end_of(detail: &TaskDetail) -> Option<f64> {
    let task = &detail.task;
    let runs = task.started_s.filter(|_| task.state.is_on_gpus());
    task.ended_s.or_else(|| Some(runs? + task.time_limit_s?))
}

/// `CODE:SIGNAL`.
pub(super) fn exit(code: Option<i32>) -> String {
    match code {
        Some(code) if code > 128 => format!("0:{}", code - 128),
        Some(code) => format!("{code}:0"),
        None => "0:0".to_owned(),
    }
}

/// This machine's name.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_hosts_are_told_one_by_one() {
        let told = |list: &str| hosts(&[list]).map(|hosts| hosts.join(" "));
        assert_eq!(told("gpu1").as_deref(), Ok("gpu1"));
        assert_eq!(told("gpu[08-10],login").as_deref(), Ok("gpu08 gpu09 gpu10 login"));
        assert_eq!(told("r[1-2]n[1,3]").as_deref(), Ok("r1n1 r1n3 r2n1 r2n3"));
        for wrong in ["gpu[1", "gpu]", "gpu[3-1]", "gpu[x]", "gpu[0-99999999]"] {
            assert!(told(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn exits_are_told_with_their_signal() {
        assert_eq!(
            (exit(Some(3)), exit(Some(137)), exit(None)),
            ("3:0".into(), "0:9".into(), "0:0".into())
        );
    }
}
