//! `coloc show`: everything about a task.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use crate::verbs::queue::clock;
use clap::Args;
use coloc_daemon::owner::TaskDetail;
use std::fmt::Write as _;

/// Show everything about a task
#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    socket: SocketArg,
    /// The task
    task: Selection,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        for id in resolve(&mut client, &[self.task])? {
            let task = client.show(id)?;
            if self.json {
                Answer { body: &task, wall_s: None }.print()?;
            } else {
                print_text(&render(&task))?;
            }
        }
        Ok(())
    }
}

fn render(detail: &TaskDetail) -> String {
    let task = &detail.task;
    let gib = |bytes: u64| format!("{:.2} GiB", bytes as f64 / (1u64 << 30) as f64);
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let command: Vec<_> = detail.command.iter().map(|word| word.to_string_lossy()).collect();
    let gpus: Vec<String> = task.gpu_ids.iter().map(ToString::to_string).collect();
    let facts = [
        ("Task", format!("{} {}", task.id, task.name)),
        ("User", task.user.clone()),
        ("State", task.state.to_string()),
        ("Reason", optional(task.reason.clone())),
        ("Command", command.join(" ")),
        ("Directory", detail.directory.to_string_lossy().into_owned()),
        (
            "GPUs",
            format!(
                "{} wanted, {}",
                task.gpus,
                if gpus.is_empty() {
                    "none given".into()
                } else {
                    format!("on {}", gpus.join(","))
                }
            ),
        ),
        (
            "GPU memory",
            format!(
                "asked {}, estimated {}, peak seen {}",
                optional(task.gpu_mem_bytes.map(gib)),
                optional(task.estimate_bytes.map(gib)),
                gib(task.peak_bytes)
            ),
        ),
        (
            "Attempts",
            format!(
                "{} ({} out of memory, {} preempted)",
                task.attempts, task.ooms, task.preemptions
            ),
        ),
        ("Priority", task.priority.to_string()),
        ("Time limit", optional(task.time_limit_s.map(clock))),
        ("Exit code", optional(task.exit_code.map(|code| code.to_string()))),
        ("Log", detail.log.clone()),
    ];
    let facts = facts.into_iter().chain(detail.holds.iter().flat_map(|holds| {
        let memory = holds.host_memory.map_or("no limit".to_owned(), |limit| limit.to_string());
        [
            ("Processes", format!("kept by {}", holds.processes)),
            ("GPU limit", holds.gpu_memory.clone()),
            ("Host memory", memory),
        ]
    }));
    let mut text = String::new();
    for (name, value) in facts {
        let _ = writeln!(text, "{name:<12}{value}");
    }
    let began = detail.story.first().map_or(0.0, |line| line.at.secs());
    let _ = writeln!(text, "Story");
    for line in &detail.story {
        let _ =
            writeln!(text, "  {:>10}  {}", format!("+{:.1} s", line.at.secs() - began), line.what);
    }
    text.trim_end().to_owned()
}
