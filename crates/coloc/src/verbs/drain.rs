//! `coloc drain` and `coloc resume`: a daemon that starts nothing new, and one that does again.

use crate::args::live::SocketArg;
use crate::error::CliError;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_daemon::owner::TaskView;
use serde::Serialize;
use std::time::Duration;

/// How often a daemon that drains is asked who still runs.
const PERIOD: Duration = Duration::from_millis(200);

/// Have the daemon take and start nothing new; what runs goes on
#[derive(Args, Debug)]
pub(crate) struct Drain {
    #[command(flatten)]
    socket: SocketArg,
    /// Stay until nothing runs
    #[arg(long)]
    wait: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How a daemon stands.
#[derive(Serialize)]
struct Told {
    draining: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<usize>,
}

impl Drain {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        client.drain(true)?;
        let mut running = || -> Result<usize, CliError> {
            let on_gpus = |task: &&TaskView| task.state.is_on_gpus();
            Ok(client.list(false, 0.0)?.tasks.iter().filter(on_gpus).count())
        };
        let mut left = running()?;
        while self.wait && left > 0 {
            std::thread::sleep(PERIOD);
            left = running()?;
        }
        if self.json {
            let told = Told { draining: true, running: Some(left) };
            return Answer { body: &told, wall_s: None }.print();
        }
        match left {
            0 => print_text("Draining: nothing runs. `coloc resume` goes on"),
            left => print_text(&format!("Draining: {left} still run. `coloc resume` goes on")),
        }
    }
}

/// Have a daemon that drains go on
#[derive(Args, Debug)]
pub(crate) struct Resume {
    #[command(flatten)]
    socket: SocketArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Resume {
    pub(crate) fn run(self) -> Result<(), CliError> {
        self.socket.connect()?.drain(false)?;
        if self.json {
            return Answer { body: &Told { draining: false, running: None }, wall_s: None }.print();
        }
        print_text("The daemon takes and starts tasks again")
    }
}
