//! `sinfo`: the one node that there is, with its GPUs.

use super::host_name;
use super::read;
use crate::args::live::SocketArg;
use crate::error::{CliError, UsageError};
use crate::output::print_text;
use crate::output::visible::visible;
use clap::Parser;
use coloc_api::answer::Gpus;
use std::ffi::OsString;

/// What sinfo is asked; what means nothing on one node is taken and left.
#[derive(Parser, Debug)]
#[command(name = "sinfo", disable_help_flag = true, version, args_override_self = true)]
struct Asked {
    /// A line a node
    #[arg(short = 'N', long = "Node")]
    node: bool,
    /// More columns
    #[arg(short = 'l', long)]
    long: bool,
    /// Fewer columns
    #[arg(short = 's', long)]
    summarize: bool,
    /// Why GPUs take nothing new
    #[arg(short = 'R', long)]
    list_reasons: bool,
    /// Leave the header out
    #[arg(short = 'h', long)]
    noheader: bool,
    /// A line in a form of one's own, such as "%P %a %G"
    #[arg(short = 'o', long, value_name = "FORMAT")]
    format: Option<String>,
    /// The same by names, such as NodeList:20,Gres:30,StateCompact
    #[arg(short = 'O', long = "Format", value_name = "NAMES", conflicts_with = "format")]
    named_format: Option<String>,
    /// The partition, of which there is one
    #[arg(short = 'p', long)]
    partition: Option<String>,
    /// Nodes, of which there is one
    #[arg(short = 'n', long)]
    nodes: Option<String>,
    #[arg(short = 'a', long, hide = true)]
    all: bool,
    #[arg(short = 'e', long, hide = true)]
    exact: bool,
    #[arg(short = 'r', long, hide = true)]
    responding: bool,
    #[arg(short = 't', long, hide = true)]
    states: Option<String>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// The node as sinfo sees it.
struct Node {
    name: String,
    state: &'static str,
    cpus: u32,
    cpus_used: u32,
    memory_mib: u64,
    gpus: String,
    gpus_used: usize,
}

impl Node {
    fn of(gpus: &Gpus) -> Self {
        let all = &gpus.gpus;
        let used = all.iter().filter(|gpu| !gpu.tasks.is_empty()).count();
        let out = all.iter().filter(|gpu| gpu.drained || gpu.lost).count();
        let state = match (used, out) {
            (0, out) if out == all.len() && out > 0 => "drained",
            (_, out) if out == all.len() && out > 0 => "draining",
            (0, _) => "idle",
            (used, _) if used == all.len() => "allocated",
            _ => "mixed",
        };
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for gpu in all {
            let kind = visible(&gpu.model).to_lowercase();
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
        let kinds: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("gpu:{kind}:{count}")).collect();
        let machine = || std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        Node {
            name: host_name(),
            state,
            cpus: gpus.host.cpus_total.unwrap_or_else(machine),
            cpus_used: gpus.host.cpus_used,
            memory_mib: gpus.host.memory_total_bytes.unwrap_or(0) >> 20,
            gpus: kinds.join(","),
            gpus_used: used,
        }
    }

    /// What a letter of sinfo's stands for, with its title.
    fn field(&self, letter: char) -> Option<(&'static str, String)> {
        let short = |state: &str| match state {
            "allocated" => "alloc".to_owned(),
            "mixed" => "mix".to_owned(),
            "drained" => "drain".to_owned(),
            "draining" => "drng".to_owned(),
            other => other.to_owned(),
        };
        let idle = self.cpus.saturating_sub(self.cpus_used);
        Some(match letter {
            'P' => ("PARTITION", "coloc*".to_owned()),
            'R' => ("PARTITION", "coloc".to_owned()),
            'a' => ("AVAIL", "up".to_owned()),
            'l' => ("TIMELIMIT", "infinite".to_owned()),
            'D' => ("NODES", "1".to_owned()),
            't' => ("STATE", short(self.state)),
            'T' => ("STATE", self.state.to_owned()),
            'N' | 'n' => ("NODELIST", self.name.clone()),
            'c' => ("CPUS", self.cpus.to_string()),
            'C' => ("CPUS(A/I/O/T)", format!("{}/{idle}/0/{}", self.cpus_used, self.cpus)),
            'm' => ("MEMORY", self.memory_mib.to_string()),
            'G' => ("GRES", self.gpus.clone()),
            'F' | 'A' => (
                "NODES(A/I/O/T)",
                match self.state {
                    "idle" => "0/1/0/1".to_owned(),
                    "drained" => "0/0/1/1".to_owned(),
                    _ => "1/0/0/1".to_owned(),
                },
            ),
            'z' => ("S:C:T", format!("1:{}:1", self.cpus)),
            'f' | 'b' => ("AVAIL_FEATURES", "(null)".to_owned()),
            'E' => ("REASON", "none".to_owned()),
            _ => return None,
        })
    }

    /// A line by `%10P %a`, or its header.
    fn line(&self, format: &str, is_header: bool) -> Result<String, CliError> {
        let mut text = String::new();
        let mut letters = format.chars().peekable();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            let right = letters.next_if_eq(&'.').is_some();
            let mut digits = String::new();
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let width = digits.parse::<usize>().unwrap_or(0).min(1000);
            let letter = letters.next().unwrap_or('%');
            let absent = || OTHER.contains(letter).then(|| ("N/A", "N/A".to_owned()));
            let field = self.field(letter).or_else(absent).ok_or_else(|| {
                let why =
                    format!("%{letter} is no letter of sinfo's; there are PRalDtTNncCmGFAzfbE");
                CliError::from(UsageError::flag("sinfo --format", why))
            })?;
            let cell = if is_header { field.0.to_owned() } else { field.1 };
            text.push_str(&match right {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
        }
        Ok(text.trim_end().to_owned())
    }
}

pub(super) fn run(socket: &SocketArg, words: &[OsString]) -> Result<(), CliError> {
    let asked: Asked = read("sinfo", words);
    let gpus = socket.connect()?.gpus()?;
    if asked.list_reasons {
        return reasons(&gpus, asked.noheader);
    }
    let usual = match (asked.node, asked.summarize, asked.long) {
        (true, _, true) => "%20N %6D %10P %11T %5c %8z %8m %G",
        (true, _, false) => "%20N %6D %10P %t",
        (_, true, _) => "%10P %5a %10l %16F %N",
        (_, _, true) => "%10P %5a %10l %6D %11T %20G %N",
        _ => "%10P %5a %10l %6D %6t %N",
    };
    let named = asked.named_format.as_deref().map(by_names).transpose()?;
    let format = asked.format.as_deref().or(named.as_deref()).unwrap_or(usual);
    let node = Node::of(&gpus);
    let header = (!asked.noheader).then(|| node.line(format, true)).transpose()?;
    let lines: Vec<String> = header.into_iter().chain([node.line(format, false)?]).collect();
    print_text(&lines.join("\n"))
}

/// Letters that sinfo has, and for which there is nothing on one node.
const OTHER: &str = "BdegHhiILMOopPrsSTuUvVwXYZ";

/// The names of `sinfo -O`, with their letters.
#[rustfmt::skip]
const NAMES: [(&str, char); 43] = [
    ("AllocMem", 'M'), ("AllocNodes", 'S'), ("Available", 'a'), ("Cluster", 'V'), ("Comment", 'M'), ("Cores", 'Y'), ("CPUs", 'c'),
    ("CPUsLoad", 'O'), ("CPUsState", 'C'), ("DefaultTime", 'L'), ("Disk", 'd'), ("Extra", 'M'), ("Features", 'f'),
    ("features_act", 'b'), ("FreeMem", 'e'), ("Gres", 'G'), ("GresUsed", 'M'), ("Groups", 'g'), ("Maxcpuspernode", 'B'),
    ("Memory", 'm'), ("NodeAI", 'A'), ("NodeAIOT", 'F'), ("NodeAddr", 'o'), ("NodeHost", 'n'), ("NodeList", 'N'), ("Nodes", 'D'),
    ("OverSubscribe", 'h'), ("Partition", 'P'), ("PartitionName", 'R'), ("Port", 'M'), ("PreemptMode", 'M'), ("PriorityTier", 'p'),
    ("Reason", 'E'), ("Root", 'r'), ("Size", 's'), ("SocketCoreThread", 'z'), ("Sockets", 'X'), ("StateCompact", 't'),
    ("StateLong", 'T'), ("Threads", 'Z'), ("Time", 'l'), ("Timestamp", 'H'), ("User", 'u'),
];

/// `NodeList:20,Gres:.30,StateCompact` as a form with letters: twenty characters for what says nothing else.
fn by_names(text: &str) -> Result<String, CliError> {
    let letter = |word: &str| {
        let (name, width) = word.split_once(':').unwrap_or((word, "20"));
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        let is_width = width.trim_start_matches('.').parse::<u16>().is_ok();
        match known.filter(|_| is_width) {
            Some((_, letter)) => Ok(format!("%{width}{letter}")),
            None => {
                let all: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                let why = format!("{word:?} is not known here; there are {}", all.join(", "));
                Err(UsageError::flag("sinfo --Format", why).into())
            }
        }
    };
    text.split(',').map(letter).collect()
}

/// Why GPUs take nothing new.
fn reasons(gpus: &Gpus, noheader: bool) -> Result<(), CliError> {
    let out = gpus.gpus.iter().filter(|gpu| gpu.drained);
    let row = |gpu: &coloc_api::view::GpuView| {
        let by = gpu.drained_by.as_deref().unwrap_or("coloc");
        let reason = visible(gpu.drain_reason.as_deref().unwrap_or("none")).into_owned();
        format!("{reason:<20} {:<10} GPU {}", visible(by), gpu.index)
    };
    let header = (!noheader).then(|| format!("{:<20} {:<10} NODELIST", "REASON", "USER"));
    print_text(&header.into_iter().chain(out.map(row)).collect::<Vec<_>>().join("\n"))
}

pub(super) fn show_node(socket: &SocketArg) -> Result<(), CliError> {
    let node = Node::of(&socket.connect()?.gpus()?);
    print_text(&format!(
        "NodeName={0} CPUAlloc={1} CPUTot={2}\n   Gres={3} GresUsed={4}\n   RealMemory={5} State={6} Partitions=coloc",
        node.name,
        node.cpus_used,
        node.cpus,
        node.gpus,
        node.gpus_used,
        node.memory_mib,
        node.state.to_uppercase()
    ))
}

pub(super) fn show_partition(socket: &SocketArg) -> Result<(), CliError> {
    let node = Node::of(&socket.connect()?.gpus()?);
    print_text(&format!(
        "PartitionName=coloc\n   Default=YES MaxTime=UNLIMITED State=UP\n   Nodes={} TotalCPUs={} TotalNodes=1 TRES=cpu={},gres/{}",
        node.name, node.cpus, node.cpus, node.gpus
    ))
}
