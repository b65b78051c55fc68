//! `coloc why`: what keeps a task waiting.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::output::visible::visible;
use crate::output::{print_tasks, print_text};
use clap::Args;
use coloc_api::view::WhyView;
use std::fmt::Write as _;

/// Say what keeps a task waiting, GPU by GPU
#[derive(Args, Debug)]
pub(crate) struct Why {
    /// The task
    task: Selection,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl Why {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        let mut all = Vec::new();
        for id in resolve(&mut client, std::slice::from_ref(&self.task))? {
            let why = client.why(id)?;
            match self.json {
                true => all.push(why),
                false => print_text(&render(&why))?,
            }
        }
        if self.json { print_tasks(&self.task, &all) } else { Ok(()) }
    }
}

fn render(why: &WhyView) -> String {
    let summary = visible(&why.summary);
    let mut text = format!("Task {} is {}: {summary}\n", why.task.id, why.task.state);
    if let Some(rule) = &why.memory.memory_rule {
        let _ = writeln!(text, "  Memory {}", visible(rule));
    }
    for gpu in &why.gpus {
        let says = match gpu.refusals.is_empty() {
            true => "would take it".to_owned(),
            false => gpu.refusals.join("; "),
        };
        let _ = writeln!(text, "  GPU {:<3} {}", gpu.gpu, visible(&says));
    }
    text.trim_end().to_owned()
}
