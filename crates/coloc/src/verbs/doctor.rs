//! `coloc doctor`: what is there, what is enforced and by what, and what to type to get further.

use crate::args::live::{Maybe, SYSTEM_SOCKET, SocketArg, own_socket};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use crate::verbs::gpus;
use clap::Args;
use coloc_api::view::{ChosenSetting, Containment, FaultView, GpuView};
use coloc_daemon::administration::admins::listed_in;
use coloc_daemon::executor::local::cgroup::Groups;
use coloc_gpu::doctor::{Facts, Finding, Health, Places, diagnose};
use coloc_gpu::driver::Guarded;
use coloc_gpu::enforce::Facilities;
use coloc_gpu::sample::dcgm::Endpoint;
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
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
        findings.extend(daemon_says(&self.socket));
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

/// What the daemon that answers says of itself: its settings, its administrators, how GPUs are shared, what is on them that is
/// no task; and whether there is another daemon.
fn daemon_says(socket: &SocketArg) -> Vec<Finding> {
    let Ok(mut client) = socket.connect() else { return Vec::new() };
    let place = client.address().to_string();
    let (Ok(status), Ok(config)) = (client.status(), client.config()) else { return Vec::new() };
    let ok = |about, what: String| Finding { about, health: Health::Ok, what, next: None };
    let origins: BTreeSet<&str> = config
        .settings
        .iter()
        .map(|setting| setting.origin.split(", line").next().unwrap_or(""))
        .collect();
    let origins = origins.into_iter().collect::<Vec<_>>().join(", ");
    let policy = &status.policy;
    let mut findings = vec![
        ok("daemon", format!("version {} answers at {place}", status.version)),
        ok(
            "settings",
            match config.settings.len() {
                0 => "none is set: all have their defaults".to_owned(),
                many => {
                    format!("{many} are set, in {origins}; `coloc config show --live --origin`")
                }
            },
        ),
        ok(
            "sharing",
            format!("{}, queue {}, placement {}", policy.share, policy.queue, policy.place),
        ),
        ok("administrators", administrators(&config.settings)),
    ];
    let told = |fault: &&FaultView| matches!(fault.word.as_str(), "foreign" | "pool");
    findings.extend(status.faults.iter().filter(told).map(|fault| Finding {
        about: if fault.word == "pool" { "pools" } else { "foreign processes" },
        health: Health::Partial,
        what: fault.text.clone(),
        next: (fault.word == "foreign").then(|| {
            "`foreign = \"tolerate\"` in [daemon] is silent about them, \"count\" expects less of their GPUs".to_owned()
        }),
    }));
    let (own, system) = (own_socket(), PathBuf::from(SYSTEM_SOCKET));
    let answers = |socket: &PathBuf| UnixStream::connect(socket).is_ok();
    if own != system && answers(&own) && answers(&system) {
        findings.push(Finding {
            about: "daemon",
            health: Health::Partial,
            what: format!(
                "two answer, at {} and at {SYSTEM_SOCKET}: neither knows of the other's tasks",
                own.display()
            ),
            next: Some(format!("end your own, or name one with --socket {SYSTEM_SOCKET}")),
        });
    }
    findings
}

/// The users who may do everything.
fn administrators(settings: &[ChosenSetting]) -> String {
    let group = settings.iter().find(|setting| setting.key == "admin-group");
    match group.and_then(|setting| setting.values.last()) {
        None => "root and the daemon's user; `admin-group` in [daemon] names a group".to_owned(),
        Some(group) => match listed_in(group).as_slice() {
            [] => format!("root, the daemon's user, and group {group}, which lists no user"),
            users => format!("root, the daemon's user, and group {group}: {}", users.join(", ")),
        },
    }
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
