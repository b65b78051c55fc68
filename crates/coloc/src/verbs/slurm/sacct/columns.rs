//! The columns of sacct.

use crate::error::{CliError, UsageError};

/// Columns by their names, with the usual width.
pub(super) const COLUMNS: [(&str, usize); 38] = [
    ("JobID", 12),
    ("JobIDRaw", 12),
    ("JobName", 10),
    ("Partition", 10),
    ("Account", 10),
    ("AllocCPUS", 10),
    ("State", 10),
    ("ExitCode", 8),
    ("User", 9),
    ("Elapsed", 10),
    ("ElapsedRaw", 10),
    ("Submit", 19),
    ("Eligible", 19),
    ("Start", 19),
    ("End", 19),
    ("Timelimit", 10),
    ("TimelimitRaw", 12),
    ("NNodes", 8),
    ("NodeList", 15),
    ("NCPUS", 10),
    ("NTasks", 8),
    ("ReqCPUS", 8),
    ("ReqMem", 10),
    ("ReqTRES", 10),
    ("AllocTRES", 10),
    ("ReqGRES", 12),
    ("Priority", 10),
    ("Restarts", 8),
    ("Reason", 22),
    ("Cluster", 10),
    ("AllocNodes", 10),
    ("CPUTime", 10),
    ("CPUTimeRAW", 10),
    ("Planned", 10),
    ("Reserved", 10),
    ("ConsumedEnergy", 14),
    ("WorkDir", 20),
    ("StdOut", 20),
];

/// Columns that sacct has and for which nothing is known here: they are empty, as Slurm leaves what was not gathered.
#[rustfmt::skip]
const EMPTY: [&str; 79] = [
    "AdminComment", "AssocID", "AveCPU", "AveCPUFreq", "AveDiskRead", "AveDiskWrite", "AvePages", "AveRSS", "AveVMSize", "BlockID",
    "Comment", "Constraints", "ConsumedEnergyRaw", "Container", "DBIndex", "DerivedExitCode", "FailedNode", "Flags", "GID", "Group",
    "Layout", "Licenses", "MaxDiskRead", "MaxDiskReadNode", "MaxDiskReadTask", "MaxDiskWrite", "MaxDiskWriteNode",
    "MaxDiskWriteTask", "MaxPages", "MaxPagesNode", "MaxPagesTask", "MaxRSS", "MaxRSSNode", "MaxRSSTask", "MaxVMSize",
    "MaxVMSizeNode", "MaxVMSizeTask", "McsLabel", "MinCPU", "MinCPUNode", "MinCPUTask", "PlannedCPU", "PlannedCPURAW", "QOS",
    "QOSRAW", "QOSREQ", "ReqCPUFreq", "ReqCPUFreqGov", "ReqCPUFreqMax", "ReqCPUFreqMin", "ReqNodes", "Reservation",
    "ReservationId", "ResvCPU", "ResvCPURAW", "StdErr", "StdIn", "SubmitLine", "Suspended", "SystemCPU", "SystemComment",
    "TRESUsageInAve", "TRESUsageInMax", "TRESUsageInMaxNode", "TRESUsageInMaxTask", "TRESUsageInMin", "TRESUsageInMinNode",
    "TRESUsageInMinTask", "TRESUsageInTot", "TRESUsageOutAve", "TRESUsageOutMax", "TRESUsageOutMaxNode", "TRESUsageOutMaxTask",
    "TRESUsageOutTot", "TotalCPU", "UID", "UserCPU", "WCKey", "WCKeyID",
];
pub(super) const USUAL: &str = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
pub(super) const BRIEF: &str = "JobID,State,ExitCode";
pub(super) const LONG: &str = "JobID,JobName,User,Partition,AllocTRES,State,ExitCode,Submit,Start,End,Elapsed,Timelimit,NodeList";

/// A column that is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) width: usize,
    pub(super) left: bool,
}

/// The width of what is empty.
const NARROW: usize = 10;

/// Every column.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|(name, _)| *name).chain(EMPTY)
}

/// `JobID,JobName%30,State%-20`.
pub(super) fn columns(text: &str) -> Result<Vec<Column>, CliError> {
    let column = |word: &str| {
        let (name, width) = word.split_once('%').map_or((word, None), |(n, w)| (n, Some(w)));
        let all = COLUMNS.into_iter().chain(EMPTY.map(|name| (name, NARROW)));
        let known = all.clone().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        let width = width.map(|width| width.trim_start_matches('-').parse::<usize>());
        match (known, width.clone().transpose()) {
            (Some((name, usual)), Ok(width)) => Ok(Column {
                name,
                width: width.unwrap_or(usual).min(1000),
                left: word.contains("%-"),
            }),
            _ => {
                let why = format!("{word:?} is no column of sacct's; `sacct -e` lists them");
                Err(UsageError::flag("sacct --format", why).into())
            }
        }
    };
    text.split(',').filter(|word| !word.is_empty()).map(column).collect()
}
