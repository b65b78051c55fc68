//! `coloc collocate`: what happens when tasks share one GPU.

use crate::args::policy::ShareFlag;
use crate::error::CliError;
use crate::output::table::{bar, table};
use crate::output::{Answer, files, print_text};
use crate::report;
use clap::Args;
use coloc_model::{GpuModel, Millis, Share, SignatureId};
use coloc_physics::{Interference, PairTable, Profile, SharedGpu, catalogue, published};
use coloc_sim::collocation::{self, Arrangement, Participant};
use serde::Serialize;
use std::path::PathBuf;

/// Analyse tasks that share one GPU, beside the published measurements
#[derive(Args, Debug)]
pub(crate) struct Collocate {
    /// What runs: a task of the catalogue, or resnet26-cifar10, resnet50-imagenet64,
    /// resnet152-imagenet, resnet152-mixed, dlrm-large
    #[arg(long, value_name = "NAME")]
    workload: String,
    /// How many copies at once
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,3,5,7")]
    copies: Vec<u32>,
    /// How they share
    #[arg(long, value_enum, value_delimiter = ',', default_value = "streams,mps,mig")]
    share: Vec<ShareFlag>,
    /// Something else that runs beside them
    #[arg(long, value_name = "OTHER")]
    with: Option<String>,
    /// The GPU
    #[arg(long, value_name = "MODEL", default_value = "A100-40GB")]
    gpu: GpuModel,
    /// Multiply all interference coefficients, to see how much a result depends on them
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    interference: f64,
    /// Write a self-contained page with all plots
    #[arg(long, value_name = "OUT.html")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One arrangement, as the JSON answer has it.
#[derive(Serialize)]
struct Row {
    workload: String,
    with: Option<String>,
    share: Share,
    layout: String,
    copies: u32,
    fits: bool,
    memory_mib: f64,
    #[serde(flatten)]
    figures: Option<Figures>,
    published_throughput: Option<f64>,
}

#[derive(Clone, Copy, Serialize)]
struct Figures {
    throughput: f64,
    slowdown_mean: f64,
    smact: f64,
    power_w: f64,
    energy_j: f64,
    energy_ratio: f64,
    makespan_s: f64,
}

#[derive(Serialize)]
struct Study {
    gpu: GpuModel,
    predicted: bool,
    experiments: Vec<Row>,
}

impl Collocate {
    pub(crate) fn run(self) -> Result<(), CliError> {
        if self.copies.iter().any(|copies| !(1..=48).contains(copies)) {
            let limit = "--copies takes 1 to 48, the most clients that an MPS server has";
            return Err(CliError::Usage(limit.to_owned()));
        }
        if !(0.0..=100.0).contains(&self.interference) {
            let message = format!("--interference takes 0 to 100, not {}", self.interference);
            return Err(CliError::Usage(message));
        }
        let study = Study { gpu: self.gpu, predicted: true, experiments: self.experiments()? };
        if let Some(file) = &self.html {
            let page = report::collocate_page(&self.page(&study));
            files::write(file, |output| output.write_all(page.as_bytes()))?;
        }
        if self.json {
            return Answer { body: &study, wall_s: None }.print();
        }
        print_text(&self.render(&study))?;
        match &self.html {
            Some(file) => print_text(&format!("Plots are in {}", file.display())),
            None => Ok(()),
        }
    }

    fn experiments(&self) -> Result<Vec<Row>, CliError> {
        let (task, other) = (SignatureId(0), SignatureId(1));
        let workload = participant(&self.workload, task)?;
        let beside = self.with.as_deref().map(|name| participant(name, other)).transpose()?;
        let gpu = SharedGpu {
            interference: Interference::default().scaled(self.interference),
            pairs: self.measured_pairs(task, other),
        };
        let mut rows = Vec::new();
        for &share in &self.share {
            for &copies in &self.copies {
                let mut tasks = vec![workload; copies as usize];
                tasks.extend(beside);
                for arrangement in Arrangement::all(self.gpu, share.into(), tasks.len()) {
                    rows.push(self.row(&gpu, copies, &tasks, arrangement));
                }
            }
        }
        Ok(rows)
    }

    fn row(
        &self,
        gpu: &SharedGpu,
        copies: u32,
        tasks: &[Participant],
        arrangement: Arrangement,
    ) -> Row {
        let fits = arrangement.fits(self.gpu, tasks);
        let figures = fits.then(|| {
            let found = arrangement.play(gpu, self.gpu, tasks);
            Figures {
                throughput: found.throughput,
                slowdown_mean: found.slowdown_mean,
                smact: found.smact,
                power_w: found.power_w,
                energy_j: found.energy_j,
                energy_ratio: found.energy_ratio,
                makespan_s: found.makespan_s,
            }
        });
        Row {
            workload: self.workload.clone(),
            with: self.with.clone(),
            share: arrangement.share,
            published_throughput: self.published(copies, &arrangement),
            layout: arrangement.layout,
            copies,
            fits,
            memory_mib: collocation::memory(tasks).mib(),
            figures,
        }
    }

    /// The DLRM pair was measured; its asymmetry is beyond the model.
    fn measured_pairs(&self, task: SignatureId, other: SignatureId) -> PairTable {
        let (dlrm, resnet) = (published::DLRM.name, published::RESNET152_MIXED.name);
        match (self.workload.as_str(), self.with.as_deref()) {
            (a, Some(b)) if a == dlrm && b == resnet => published::measured_pairs(other, task),
            (a, Some(b)) if a == resnet && b == dlrm => published::measured_pairs(task, other),
            _ => PairTable::default(),
        }
    }

    fn published(&self, copies: u32, arrangement: &Arrangement) -> Option<f64> {
        if self.gpu != GpuModel::A100_40GB {
            return None;
        }
        let Some(with) = &self.with else {
            let same = |point: &&published::CopiesPoint| {
                point.subject == self.workload
                    && point.copies == copies as usize
                    && point.share == arrangement.share
            };
            return published::COPIES.iter().find(same).map(|point| point.throughput);
        };
        let pair = [published::DLRM, published::RESNET152_MIXED];
        let named = |name: &str| pair.iter().any(|subject| subject.name == name);
        let is_pair = copies == 1 && self.workload != *with && named(&self.workload) && named(with);
        // The published MIG run shared one instance's memory.
        let is_mode = arrangement.share != Share::Mig || arrangement.layout.contains("shared");
        let sequential: f64 = pair.iter().map(|subject| subject.duration().secs() / 3600.0).sum();
        let mode = published::DLRM_WITH_RESNET152.iter().find(|p| p.share == arrangement.share)?;
        (is_pair && is_mode).then_some(sequential / mode.dlrm_h)
    }

    fn title(&self) -> String {
        let with = self.with.as_ref().map_or(String::new(), |other| format!(" beside {other}"));
        format!("Copies of {}{with} on one {}", self.workload, self.gpu)
    }

    fn render(&self, study: &Study) -> String {
        let header = [
            "share",
            "copies",
            "throughput",
            "",
            "published",
            "slowdown",
            "SMACT",
            "memory",
            "power",
            "energy",
        ];
        let best = study.experiments.iter().filter_map(|row| row.figures);
        let best = best.map(|figures| figures.throughput).fold(1.0, f64::max);
        let rows = study.experiments.iter().map(|row| {
            let mode = if row.layout.is_empty() {
                row.share.to_string()
            } else {
                format!("{} {}", row.share, row.layout)
            };
            let published = row.published_throughput.map_or(String::new(), |t| format!("{t:.2}x"));
            let memory = format!("{:.1} GiB", row.memory_mib / 1024.0);
            let mut cells = vec![mode, row.copies.to_string()];
            match row.figures {
                Some(f) => cells.extend([
                    format!("{:.2}x", f.throughput),
                    format!("{:<16}", bar(f.throughput / best, 16)),
                    published,
                    format!("{:.2}x", f.slowdown_mean),
                    format!("{:.2}", f.smact),
                    memory,
                    format!("{:.0} W", f.power_w),
                    format!("{:.2}x", f.energy_ratio),
                ]),
                None => cells.extend(
                    ["does not fit", "", &published, "", "", &memory, "", ""].map(str::to_owned),
                ),
            }
            cells
        });
        format!(
            "{}, predicted by the model\nThroughput and energy are against one task at a time.\n\n{}",
            self.title(),
            table(&header, rows)
        )
    }

    fn page(&self, study: &Study) -> report::CollocatePage {
        let experiments = study.experiments.iter().map(|row| {
            let figures = row.figures;
            let figure = |of: fn(Figures) -> f64| figures.map_or(0.0, of);
            report::Experiment {
                workload: row.workload.clone(),
                with: row.with.clone(),
                share: row.share.to_string(),
                layout: row.layout.clone(),
                copies: row.copies,
                fits: row.fits,
                throughput: figure(|f| f.throughput),
                slowdown_mean: figure(|f| f.slowdown_mean),
                smact: figure(|f| f.smact),
                memory_mib: row.memory_mib,
                power_w: figure(|f| f.power_w),
                energy_ratio: figure(|f| f.energy_ratio),
                published: row.published_throughput,
                published_what: row
                    .published_throughput
                    .map(|_| "EuroMLSys'24 collocation analysis, A100-40GB".to_owned()),
            }
        });
        report::CollocatePage {
            title: self.title(),
            gpu: report::Gpu {
                name: "gpu0".to_owned(),
                model: self.gpu.name().to_owned(),
                memory_mib: self.gpu.memory().mib(),
                limit_w: self.gpu.limit_watts(),
            },
            note: "Predicted by the model, not measured".to_owned(),
            experiments: experiments.collect(),
        }
    }
}

/// A workload by name, from the published analysis or from the catalogue.
fn participant(name: &str, signature: SignatureId) -> Result<Participant, CliError> {
    let found: Option<(Profile, Millis)> = published::find(name)
        .map(|subject| (subject.profile(), subject.duration()))
        .or_else(|| catalogue::find(name).map(|known| (known.profile(), known.duration())));
    let Some((profile, alone)) = found else {
        let subjects = published::SUBJECTS.map(|subject| subject.name).join(", ");
        let names: Vec<&str> = catalogue::all().map(|known| known.name).collect();
        return Err(CliError::Usage(format!(
            "unknown workload {name:?}\npublished analysis: {subjects}\ncatalogue: {}",
            names.join(", ")
        )));
    };
    Ok(Participant { signature, profile, alone })
}
