//! `coloc doctor`: what is there, what is enforced and by what, and what to type to get further.

use crate::args::live::{Maybe, SocketArg};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use crate::verbs::gpus;
use clap::Args;
use coloc_api::view::{Containment, GpuView};
use coloc_daemon::executor::local::cgroup::Groups;
use coloc_gpu::doctor::{Facts, Finding, Health, Places, diagnose};
use coloc_gpu::driver::Guarded;
use coloc_gpu::enforce::Facilities;
use coloc_gpu::sample::dcgm::Endpoint;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(10);

/// Say what this machine can do for its GPUs, what is enforced, and how to get further
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// A dcgm-exporter to look for [default: 127.0.0.1:9400]
    #[arg(long, value_name = "HOST:PORT", env = "COLOC_DCGM_EXPORTER")]
    exporter: Option<Maybe<Endpoint>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Serialize)]
struct Diagnosis {
    emulated: bool,
    enforcement: Facilities,
    findings: Vec<Finding>,
}

impl Doctor {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let places = Places::default();
        let exporter = self.exporter.as_ref().and_then(Maybe::get).cloned();
        let places = Places { exporter: exporter.or(places.exporter), ..places };
        let facts = Facts::gather(&Guarded::nvml(DEADLINE), &places);
        let mut findings = diagnose(&facts);
        findings.push(task_processes(&self.socket));
        findings.extend(launching(&self.socket));
        findings.extend(drained(&self.socket));
        let answer = Diagnosis {
            emulated: facts.gpus.iter().any(|gpu| gpu.identity.emulated),
            enforcement: facts.facilities(),
            findings,
        };
        match self.json {
            true => Answer { body: &answer, wall_s: None }.print()?,
            false => print_text(&render(&answer.findings))?,
        }
        let broken = answer.findings.iter().filter(|finding| finding.health == Health::Broken);
        let mut broken: Vec<&str> = broken.map(|finding| finding.about).collect();
        broken.dedup();
        if broken.is_empty() { Ok(()) } else { Err(CliError::Broken(broken.join(", "))) }
    }
}

/// How tasks' processes are kept together: by the daemon that answers, or as one started here would do it.
fn task_processes(socket: &SocketArg) -> Finding {
    let running = socket.connect().and_then(|mut client| Ok(client.status()?));
    let (containment, what) = match running {
        Ok(status) => (status.containment, status.processes),
        // By a name that no daemon has: its groups are left alone.
        Err(_) => match Groups::find(Path::new("doctor")) {
            Ok(groups) => {
                groups.leave();
                let what = format!("{} (no daemon answers; one started here)", groups.says());
                (groups.containment(), what)
            }
            Err(why) => {
                let what = format!("session: {why} (no daemon answers; one started here)");
                (Containment::Session, what)
            }
        },
    };
    let (health, next) = match containment {
        Containment::CgroupWithLimits => (Health::Ok, None),
        Containment::Cgroup => {
            let next = "`coloc init` writes a unit with Delegate=yes and DelegateSubgroup=daemon (systemd 254)";
            (Health::Partial, Some(next))
        }
        Containment::Session => {
            (Health::Partial, Some("start it as a service: `coloc init` writes the unit"))
        }
    };
    Finding { about: "task processes", health, what, next: next.map(str::to_owned) }
}

/// Whether the daemon that answers can launch tasks.
fn launching(socket: &SocketArg) -> Option<Finding> {
    let status = socket.connect().ok()?.status().ok()?;
    let (health, what, next) = match status.trouble {
        Some(trouble) => {
            let next = "see to the machine; no task ends because of it".to_owned();
            (Health::Broken, trouble, Some(next))
        }
        None if status.draining => {
            let next = "`coloc resume` goes on".to_owned();
            (Health::Partial, "nothing is launched: the daemon drains".to_owned(), Some(next))
        }
        None => (Health::Ok, "tasks are launched".to_owned(), None),
    };
    Some(Finding { about: "launching", health, what, next })
}

/// GPUs that the daemon keeps tasks from. One that is faulty is broken; one that an administrator drained is not.
fn drained(socket: &SocketArg) -> Vec<Finding> {
    let told = socket.connect().and_then(|mut client| Ok(client.gpus()?));
    let gpus = told.map(|told| told.gpus).unwrap_or_default();
    let finding = |gpu: &GpuView| {
        let faulty = gpu.drained_by.is_none() || !gpu.faults.is_empty();
        Some(Finding {
            about: "drained",
            health: if faulty { Health::Broken } else { Health::Partial },
            what: gpus::trouble(gpu)?,
            next: Some(format!("`coloc resume --gpu {}`, once it is mended", gpu.index)),
        })
    };
    gpus.iter().filter(|gpu| gpu.drained).filter_map(finding).collect()
}

pub(crate) fn render(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.about.len()).max().unwrap_or(0);
    let line = |finding: &Finding| {
        let mark = match finding.health {
            Health::Ok => "ok     ",
            Health::Partial => "partial",
            Health::Missing => "missing",
            Health::Broken => "BROKEN ",
        };
        let Finding { about, what, next, .. } = finding;
        let indent = " ".repeat(width + 2 + mark.len() + 2);
        let next = next.as_ref().map_or(String::new(), |next| format!("\n{indent}→ {next}"));
        format!("{about:width$}  {mark}  {what}{next}")
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}
