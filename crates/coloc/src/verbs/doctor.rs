//! `coloc doctor`: what is there, what is enforced and by what, and what to type to get further.

use crate::error::CliError;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_gpu::doctor::{Facts, Finding, Health, Places, diagnose};
use coloc_gpu::driver::Guarded;
use coloc_gpu::enforce::Facilities;
use coloc_gpu::sample::dcgm::Endpoint;
use serde::Serialize;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(10);

/// Say what this machine can do for its GPUs, what is enforced, and how to get further
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// A dcgm-exporter to look for
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "COLOC_DCGM_EXPORTER",
        default_value = "127.0.0.1:9400"
    )]
    exporter: Endpoint,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Diagnosis {
    emulated: bool,
    enforcement: Facilities,
    findings: Vec<Finding>,
}

impl Doctor {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let places = Places { exporter: Some(self.exporter), ..Places::default() };
        let facts = Facts::gather(&Guarded::nvml(DEADLINE), &places);
        let answer = Diagnosis {
            emulated: facts.gpus.iter().any(|gpu| gpu.identity.emulated),
            enforcement: facts.facilities(),
            findings: diagnose(&facts),
        };
        if self.json {
            return Answer { body: &answer, wall_s: None }.print();
        }
        print_text(&render(&answer.findings))
    }
}

fn render(findings: &[Finding]) -> String {
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
