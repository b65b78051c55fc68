//! What a list in a form of one's own can show of a task, by squeue's letters and names.

use super::clock;
use crate::local_time::LocalTime;
use crate::output::visible::visible;
use crate::parse::states::{letters, slurms};
use crate::verbs::slurm::host_name;
use coloc_api::text::shell_quoted;
use coloc_api::view::{ReasonCode, TaskDetail, TaskView};
use std::cmp::Ordering;

/// Something about a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    Id,
    TaskId,
    ArrayId,
    ArrayIndex,
    Name,
    User,
    State,
    StateWord,
    TimeUsed,
    TimeLimit,
    TimeLeft,
    Nodes,
    Gpus,
    Gres,
    GpuIds,
    Memory,
    Peak,
    Reason,
    Place,
    Partition,
    Priority,
    Submitted,
    Started,
    Ended,
    NodesOrReason,
    Account,
    Host,
    Cpus,
    Copies,
    Directory,
    Command,
    Output,
    Tres,
    Restarts,
    Waited,
    ExitCode,
    /// Slurm has it, and there is no such thing here.
    Absent(&'static str),
}

/// Each with squeue's letter, its names and its title.
const FIELDS: [(Field, char, &[&str], &str); 36] = [
    (Field::Id, 'i', &["jobid", "id"], "JOBID"),
    (Field::TaskId, 'A', &["jobarrayid", "taskid"], "JOBID"),
    (Field::ArrayId, 'F', &["arrayjobid"], "ARRAY_JOB_ID"),
    (Field::ArrayIndex, 'K', &["arraytaskid"], "ARRAY_TASK_ID"),
    (Field::Name, 'j', &["name"], "NAME"),
    (Field::User, 'u', &["username", "user"], "USER"),
    (Field::State, 't', &["statecompact", "st"], "ST"),
    (Field::StateWord, 'T', &["state"], "STATE"),
    (Field::TimeUsed, 'M', &["timeused", "time"], "TIME"),
    (Field::TimeLimit, 'l', &["timelimit", "limit"], "TIME_LIMIT"),
    (Field::TimeLeft, 'L', &["timeleft"], "TIME_LEFT"),
    (Field::Nodes, 'D', &["numnodes"], "NODES"),
    (Field::Gpus, 'g', &["gpus"], "GPUS"),
    (Field::Gres, 'b', &["gres", "tres-per-node", "tres-per-job"], "TRES_PER_NODE"),
    (Field::GpuIds, 'N', &["nodelist", "gpu-ids"], "GPU_IDS"),
    (Field::Memory, 'm', &["minmemory", "gpu-mem"], "GPU_MEM"),
    (Field::Peak, 'X', &["peak"], "PEAK"),
    (Field::Reason, 'r', &["reason"], "REASON"),
    (Field::Place, 'R', &["reasonlist"], "GPU(REASON)"),
    (Field::Partition, 'P', &["partition"], "PARTITION"),
    (Field::Priority, 'Q', &["prioritylong", "priority"], "PRIORITY"),
    (Field::Submitted, 'V', &["submittime", "submitted"], "SUBMIT_TIME"),
    (Field::Started, 'S', &["starttime", "started"], "START_TIME"),
    (Field::Ended, 'e', &["endtime", "ended"], "END_TIME"),
    (Field::NodesOrReason, ' ', &["nodes"], "NODELIST(REASON)"),
    (Field::Account, 'a', &["account"], "ACCOUNT"),
    (Field::Host, 'B', &["batchhost"], "EXEC_HOST"),
    (Field::Cpus, 'C', &["numcpus", "mincpus"], "CPUS"),
    (Field::Copies, ' ', &["numtasks"], "TASKS"),
    (Field::Directory, 'Z', &["workdir"], "WORK_DIR"),
    (Field::Command, 'o', &["command"], "COMMAND"),
    (Field::Output, ' ', &["stdout"], "STDOUT"),
    (Field::Tres, ' ', &["tres-alloc", "tres"], "TRES_ALLOC"),
    (Field::Restarts, ' ', &["restartcnt"], "RESTART_COUNT"),
    (Field::Waited, ' ', &["pendingtime"], "PENDING_TIME"),
    (Field::ExitCode, ' ', &["exit_code", "exitcode"], "EXIT_CODE"),
];

/// What else squeue has letters for, with the titles.
#[rustfmt::skip]
const OTHER_LETTERS: [(char, &str); 21] = [
    ('c', "MIN_CPUS"), ('d', "MIN_TMP_DISK"), ('E', "DEPENDENCY"), ('f', "FEATURES"), ('G', "GROUP"), ('h', "OVER_SUBSCRIBE"),
    ('H', "SOCKETS_PER_NODE"), ('I', "CORES_PER_SOCKET"), ('J', "THREADS_PER_CORE"), ('k', "COMMENT"), ('n', "REQ_NODES"),
    ('O', "CONTIGUOUS"), ('q', "QOS"), ('U', "UID"), ('v', "RESERVATION"), ('w', "WCKEY"), ('W', "LICENSES"), ('x', "EXC_NODES"),
    ('y', "NICE"), ('Y', "SCHEDNODES"), ('z', "S:C:T"), 
];

/// What else squeue has names for.
#[rustfmt::skip]
const OTHER_NAMES: [&str; 80] = [
    "AccrueTime", "Admin_Comment", "AllocNodes", "AllocSID", "AssocID", "BatchFlag", "BoardsPerNode", "BurstBuffer",
    "BurstBufferState", "Cluster", "ClusterFeature", "Comment", "Container", "ContainerID", "Contiguous", "Cores", "CoreSpec",
    "CPUFreq", "Cpus-Per-Task", "Cpus-Per-Tres", "Deadline", "DelayBoot", "Dependency", "DerivedEC", "EligibleTime", "ExcNodes",
    "Feature", "GroupID", "GroupName", "HetJobID", "HetJobIDSet", "HetJobOffset", "LastSchedEval", "Licenses", "MaxCPUs",
    "MaxNodes", "MCSLabel", "Mem-Per-Tres", "MinTime", "MinTmpDisk", "Network", "Nice", "NTPerBoard", "NTPerCore", "NTPerNode",
    "NTPerSocket", "Origin", "OriginRaw", "OverSubscribe", "PreemptTime", "Prefer", "Profile", "QOS", "Reboot", "ReqNodes",
    "ReqSwitch", "Requeue", "Reservation", "ResizeTime", "ResvPort", "SchedNodes", "SCT", "SelectJobInfo", "SiblingsActive",
    "SiblingsActiveRaw", "SiblingsViable", "SiblingsViableRaw", "Sockets", "SPerBoard", "StdErr", "StdIn", "SystemComment",
    "Threads", "Tres-Bind", "Tres-Freq", "Tres-Per-Socket", "Tres-Per-Step", "Tres-Per-Task", "UserID", "Wait4Switch",
];

/// A task of a list, and what only it itself tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<'a> {
    pub(super) task: &'a TaskView,
    pub(super) more: Option<&'a TaskDetail>,
}

/// What a task waits for, in a word of Slurm's.
fn slurms_reason(task: &TaskView) -> &'static str {
    match task.reason_code {
        Some(ReasonCode::Held) => "JobHeldUser",
        Some(ReasonCode::Begin | ReasonCode::Retry) => "BeginTime",
        Some(ReasonCode::Dependency) => "Dependency",
        Some(ReasonCode::ArrayLimit) => "JobArrayTaskLimit",
        Some(ReasonCode::Quota) => "QOSMaxGRESPerUser",
        Some(ReasonCode::Order) => "Priority",
        Some(ReasonCode::Drained | ReasonCode::LostGpu) => "ReqNodeNotAvail",
        _ if task.state.is_over() => "None",
        _ => "Resources",
    }
}

impl Field {
    pub(super) fn by_letter(letter: char) -> Result<Self, String> {
        let letter = if letter == 'p' { 'Q' } else { letter };
        let found = FIELDS.iter().find(|(_, known, ..)| *known == letter && letter != ' ');
        let other = OTHER_LETTERS.iter().find(|(known, _)| *known == letter);
        let other = other.map(|(_, title)| Field::Absent(title));
        found.map(|(field, ..)| *field).or(other).ok_or_else(|| {
            let known = FIELDS.iter().map(|(_, letter, ..)| *letter);
            let known: String = known.filter(|letter| *letter != ' ').collect();
            format!("%{letter} is not known here; there are the letters {known}")
        })
    }

    pub(super) fn by_name(name: &str) -> Result<Self, String> {
        let wanted = name.trim().to_ascii_lowercase();
        let found = FIELDS.iter().find(|(_, _, names, _)| names.contains(&wanted.as_str()));
        let other = OTHER_NAMES.iter().find(|known| known.eq_ignore_ascii_case(&wanted));
        let other = other.map(|name| Field::Absent(name));
        found.map(|(field, ..)| *field).or(other).ok_or_else(|| {
            let known: Vec<&str> = FIELDS.iter().map(|(_, _, names, _)| names[0]).collect();
            format!("{name:?} is not known here; there are {}", known.join(", "))
        })
    }

    pub(super) fn title(self) -> &'static str {
        if let Field::Absent(title) = self {
            return title;
        }
        FIELDS.iter().find(|(field, ..)| *field == self).map_or("", |(.., title)| title)
    }

    /// Lists do not tell it.
    pub(super) fn asks_each(self) -> bool {
        use Field::{Command, Copies, Cpus, Directory, Output, Tres};
        matches!(self, Cpus | Copies | Directory | Command | Output | Tres)
    }

    pub(super) fn text(self, Listed { task, more }: Listed<'_>, now: f64) -> String {
        let none = || "N/A".to_owned();
        let moment = |at: Option<f64>| {
            at.and_then(|at| LocalTime::of(at as i64)).map_or_else(none, |at| at.to_string())
        };
        let memory = |bytes: u64| format!("{}M", bytes >> 20);
        let gpu_ids = || task.gpu_ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        match self {
            Field::Id => match (task.array_id, task.array_index) {
                (Some(array), Some(index)) => format!("{array}_{index}"),
                _ => task.id.to_string(),
            },
            Field::TaskId => task.id.to_string(),
            Field::ArrayId => task.array_id.unwrap_or(task.id).to_string(),
            Field::ArrayIndex => task.array_index.map_or_else(none, |index| index.to_string()),
            Field::Name => visible(&task.name).into_owned(),
            Field::User => visible(&task.user).into_owned(),
            Field::State => letters(task.state).to_owned(),
            Field::StateWord => slurms(task.state).to_uppercase(),
            Field::TimeUsed => clock(used(task, now)),
            Field::TimeLimit => task.time_limit_s.map_or("UNLIMITED".to_owned(), clock),
            Field::TimeLeft => task
                .time_limit_s
                .map_or("UNLIMITED".to_owned(), |limit| clock(limit - used(task, now))),
            Field::Nodes => "1".to_owned(),
            Field::Gpus => task.gpus.to_string(),
            Field::Gres => format!("gres/gpu:{}", task.gpus),
            Field::GpuIds => gpu_ids(),
            Field::Memory => task.gpu_mem_bytes.or(task.estimate_bytes).map_or_else(none, memory),
            Field::Peak => memory(task.peak_bytes),
            Field::Reason => task.reason.as_deref().map_or("None".into(), visible).into_owned(),
            Field::Place if task.state.is_on_gpus() => gpu_ids(),
            Field::Place => format!("({})", visible(task.reason.as_deref().unwrap_or("None"))),
            Field::Partition => "coloc".to_owned(),
            Field::Priority => task.priority.to_string(),
            Field::Submitted => moment(Some(task.submitted_s)),
            Field::Started => moment(task.started_s),
            Field::Ended => moment(task.ended_s),
            Field::NodesOrReason if task.state.is_on_gpus() => host_name(),
            Field::NodesOrReason => format!("({})", slurms_reason(task)),
            Field::Account => visible(&task.user).into_owned(),
            Field::Host => task.state.is_on_gpus().then(host_name).unwrap_or_else(none),
            Field::Restarts => task.attempts.saturating_sub(1).to_string(),
            Field::Waited => {
                let began = task.first_started_s.or(task.ended_s).unwrap_or(now);
                format!("{:.0}", (began - task.submitted_s).max(0.0))
            }
            Field::ExitCode => task.exit_code.map_or_else(none, |code| code.to_string()),
            Field::Absent(_) => none(),
            _ => self.text_of_detail(task, more),
        }
    }

    /// What only the task itself tells.
    fn text_of_detail(self, task: &TaskView, more: Option<&TaskDetail>) -> String {
        let cpus = more.and_then(|more| more.cpus).unwrap_or(1);
        let words = |more: &TaskDetail| {
            let quoted = more.command.iter().map(|word| shell_quoted(word.as_bytes()));
            String::from_utf8_lossy(&quoted.collect::<Vec<_>>().join(&b' ')).into_owned()
        };
        let told = match self {
            Field::Cpus => Some(cpus.to_string()),
            Field::Copies => Some(more.and_then(|more| more.ntasks).unwrap_or(1).to_string()),
            Field::Tres => Some(format!("cpu={cpus},node=1,gres/gpu={}", task.gpus)),
            Field::Directory => more.map(|more| more.directory.to_string_lossy().into_owned()),
            Field::Command => more.map(words),
            Field::Output => more.map(|more| more.log.clone()),
            _ => None,
        };
        told.map_or_else(|| "N/A".to_owned(), |told| visible(&told).into_owned())
    }

    /// Numbers go by what they are, the rest by their text.
    pub(super) fn compare(self, a: &TaskView, b: &TaskView, now: f64) -> Ordering {
        let numbers = |of: &dyn Fn(&TaskView) -> f64| of(a).total_cmp(&of(b));
        match self {
            Field::Id | Field::TaskId => a.id.cmp(&b.id),
            Field::ArrayId => a.array_id.cmp(&b.array_id),
            Field::ArrayIndex => a.array_index.cmp(&b.array_index),
            Field::TimeUsed => numbers(&|task| used(task, now)),
            Field::TimeLimit => numbers(&|task| task.time_limit_s.unwrap_or(f64::INFINITY)),
            Field::TimeLeft => {
                numbers(&|task| task.time_limit_s.unwrap_or(f64::INFINITY) - used(task, now))
            }
            Field::Gpus | Field::Gres => a.gpus.cmp(&b.gpus),
            Field::GpuIds => a.gpu_ids.cmp(&b.gpu_ids),
            Field::Memory => {
                a.gpu_mem_bytes.or(a.estimate_bytes).cmp(&b.gpu_mem_bytes.or(b.estimate_bytes))
            }
            Field::Peak => a.peak_bytes.cmp(&b.peak_bytes),
            Field::Priority => a.priority.cmp(&b.priority),
            Field::Submitted => numbers(&|task| task.submitted_s),
            Field::Started => numbers(&|task| task.started_s.unwrap_or(f64::INFINITY)),
            Field::Ended => numbers(&|task| task.ended_s.unwrap_or(f64::INFINITY)),
            _ => {
                let text = |task| self.text(Listed { task, more: None }, now);
                text(a).cmp(&text(b))
            }
        }
    }
}

/// How long it has run, or ran.
fn used(task: &TaskView, now: f64) -> f64 {
    task.ran_s(now).unwrap_or(0.0)
}
