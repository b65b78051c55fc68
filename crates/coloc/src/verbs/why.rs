//! `coloc why`: what keeps a task waiting.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_daemon::owner::WhyView;
use std::fmt::Write as _;

/// Say what keeps a task waiting, GPU by GPU
#[derive(Args, Debug)]
pub(crate) struct Why {
    #[command(flatten)]
    socket: SocketArg,
    /// The task
    task: Selection,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Why {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        for id in resolve(&mut client, &[self.task])? {
            let why = client.why(id)?;
            if self.json {
                Answer { body: &why, wall_s: None }.print()?;
            } else {
                print_text(&render(&why))?;
            }
        }
        Ok(())
    }
}

fn render(why: &WhyView) -> String {
    let mut text = format!("Task {} is {}: {}\n", why.task.id, why.task.state, why.summary);
    for gpu in &why.gpus {
        let says = match gpu.refusals.is_empty() {
            true => "would take it".to_owned(),
            false => gpu.refusals.join("; "),
        };
        let _ = writeln!(text, "  GPU {:<3} {says}", gpu.gpu);
    }
    text.trim_end().to_owned()
}
