//! `coloc collocate`: what happens when tasks share one GPU, by the model or by running a command.

mod learn;
mod live;

use crate::args::policy::ShareFlag;
use crate::error::{CliError, UsageError};
use crate::output::table::{bar, table};
use crate::output::{Answer, files, print_text};
use crate::report;
use clap::Args;
use coloc_model::{GpuModel, Millis, Share, SignatureId};
use coloc_physics::{Interference, PairTable, Profile, SharedGpu, catalogue, published};
use coloc_sim::collocation::{self, Arrangement, Findings, Participant};
use serde::Serialize;
use std::path::PathBuf;

/// Analyse tasks that share one GPU: by the model beside published measurements, or a command of yours after --, live
#[derive(Args, Debug)]
pub(crate) struct Collocate {
    /// What runs: a task of the catalogue, or resnet26-cifar10, resnet50-imagenet64,
    /// resnet152-imagenet, resnet152-mixed, dlrm-large [default: the whole published analysis]
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// How many copies at once [default: 1,2,3,5,7; live 1,2,3]
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    copies: Option<Vec<u32>>,
    /// How they share
    #[arg(long, value_enum, value_delimiter = ',', default_value = "streams,mps,mig")]
    share: Vec<ShareFlag>,
    /// Something else that runs beside them
    #[arg(long, value_name = "OTHER", requires = "workload")]
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
    #[command(flatten)]
    live: live::LiveArgs,
}

/// How many copies the model is asked about.
const COPIES: [u32; 5] = [1, 2, 3, 5, 7];

/// Copies of one workload, alone or beside another.
#[derive(Clone, Debug)]
struct Case {
    workload: String,
    with: Option<String>,
    copies: Vec<u32>,
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
    figures: Option<Findings>,
    published_throughput: Option<f64>,
}

#[derive(Serialize)]
struct Study {
    gpu: GpuModel,
    predicted: bool,
    experiments: Vec<Row>,
}

impl Collocate {
    pub(crate) fn run(self) -> Result<(), CliError> {
        if self.copies.iter().flatten().any(|copies| !(1..=48).contains(copies)) {
            let why = "from 1 to 48, the most clients that an MPS server has";
            return Err(UsageError::flag("--copies", why).into());
        }
        if self.live.is_wanted() {
            let shares = self.share.iter().map(|&share| share.into()).collect();
            return self.live.run(self.copies, shares, self.json);
        }
        if !(0.0..=100.0).contains(&self.interference) {
            let given = self.interference;
            return Err(UsageError::value("--interference", "0 to 100", given).into());
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

    /// What was asked for, or else everything that was published.
    fn cases(&self) -> Vec<Case> {
        let case = |workload: &str, with: Option<&str>, copies: &[u32]| Case {
            workload: workload.to_owned(),
            with: with.map(str::to_owned),
            copies: copies.to_vec(),
        };
        if let Some(workload) = &self.workload {
            return vec![case(workload, self.with.as_deref(), self.copies())];
        }
        let alone = [published::RESNET26, published::RESNET50, published::RESNET152];
        let mut cases: Vec<Case> =
            alone.iter().map(|subject| case(subject.name, None, self.copies())).collect();
        cases.push(case(published::DLRM.name, Some(published::RESNET152_MIXED.name), &[1]));
        cases
    }

    fn copies(&self) -> &[u32] {
        self.copies.as_deref().unwrap_or(&COPIES)
    }

    fn experiments(&self) -> Result<Vec<Row>, CliError> {
        let mut rows = Vec::new();
        for case in self.cases() {
            self.play(&case, &mut rows)?;
        }
        Ok(rows)
    }

    fn play(&self, case: &Case, rows: &mut Vec<Row>) -> Result<(), CliError> {
        let (task, other) = (SignatureId(0), SignatureId(1));
        let workload = participant(&case.workload, task)?;
        let beside = case.with.as_deref().map(|name| participant(name, other)).transpose()?;
        let gpu = SharedGpu {
            interference: Interference::default().scaled(self.interference),
            pairs: case.measured_pairs(task, other),
        };
        for &share in &self.share {
            for &copies in &case.copies {
                let mut tasks = vec![workload; copies as usize];
                tasks.extend(beside);
                for arrangement in Arrangement::all(self.gpu, share.into(), tasks.len()) {
                    rows.push(self.row(&gpu, case, copies, &tasks, arrangement));
                }
            }
        }
        Ok(())
    }

    fn row(
        &self,
        gpu: &SharedGpu,
        case: &Case,
        copies: u32,
        tasks: &[Participant],
        arrangement: Arrangement,
    ) -> Row {
        let fits = arrangement.fits(self.gpu, tasks);
        let measured = self.gpu == GpuModel::A100_40GB;
        Row {
            workload: case.workload.clone(),
            with: case.with.clone(),
            share: arrangement.share,
            published_throughput: case.published(copies, &arrangement).filter(|_| measured),
            copies,
            fits,
            memory_mib: collocation::memory(tasks).mib(),
            figures: fits.then(|| arrangement.play(gpu, self.gpu, tasks)),
            layout: arrangement.layout,
        }
    }

    fn title(&self) -> String {
        match self.cases().as_slice() {
            [case] => format!("{} on one {}", case.title(), self.gpu),
            _ => format!("The published analysis of collocation, on one {}", self.gpu),
        }
    }

    fn render(&self, study: &Study) -> String {
        let groups = study
            .experiments
            .chunk_by(|a, b| (&a.workload, &a.with) == (&b.workload, &b.with))
            .map(render_group);
        format!(
            "{}, predicted by the model\nThroughput and energy are against one task at a time.\n\n{}",
            self.title(),
            groups.collect::<Vec<_>>().join("\n\n")
        )
    }

    fn page(&self, study: &Study) -> report::CollocatePage {
        let experiments = study.experiments.iter().map(|row| {
            let figures = row.figures;
            let figure = |of: fn(Findings) -> f64| figures.map_or(0.0, of);
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

impl Case {
    fn title(&self) -> String {
        format!("Copies of {}", beside(&self.workload, self.with.as_deref()))
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

    /// The published throughput of this arrangement, if there is one.
    fn published(&self, copies: u32, arrangement: &Arrangement) -> Option<f64> {
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
        let is_mode = arrangement.share != Share::Mig || arrangement.shares_memory();
        let sequential: f64 = pair.iter().map(|subject| subject.duration().secs() / 3600.0).sum();
        let mode = published::DLRM_WITH_RESNET152.iter().find(|p| p.share == arrangement.share)?;
        (is_pair && is_mode).then_some(sequential / mode.dlrm_h)
    }
}

fn beside(workload: &str, with: Option<&str>) -> String {
    with.map_or(workload.to_owned(), |other| format!("{workload} beside {other}"))
}

/// The table of one workload.
fn render_group(rows: &[Row]) -> String {
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
    let figures = rows.iter().filter_map(|row| row.figures);
    let best = figures.map(|found| found.throughput).fold(1.0, f64::max);
    let title =
        rows.first().map_or(String::new(), |row| beside(&row.workload, row.with.as_deref()));
    format!("{title}\n{}", table(&header, rows.iter().map(|row| render_row(row, best))))
}

fn render_row(row: &Row, best: f64) -> Vec<String> {
    let mode = if row.layout.is_empty() {
        row.share.to_string()
    } else {
        format!("{} {}", row.share, row.layout)
    };
    let published = row.published_throughput.map_or(String::new(), |t| format!("{t:.2}x"));
    let memory = format!("{:.1} GiB", row.memory_mib / 1024.0);
    let mut cells = vec![mode, row.copies.to_string()];
    match row.figures {
        Some(found) => cells.extend([
            format!("{:.2}x", found.throughput),
            format!("{:<16}", bar(found.throughput / best, 16)),
            published,
            format!("{:.2}x", found.slowdown_mean),
            format!("{:.2}", found.smact),
            memory,
            format!("{:.0} W", found.power_w),
            format!("{:.2}x", found.energy_ratio),
        ]),
        None => cells
            .extend(["does not fit", "", &published, "", "", &memory, "", ""].map(str::to_owned)),
    }
    cells
}

/// A workload by name, from the published analysis or from the catalogue.
fn participant(name: &str, signature: SignatureId) -> Result<Participant, CliError> {
    let found: Option<(Profile, Millis)> = published::find(name)
        .map(|subject| (subject.profile(), subject.duration()))
        .or_else(|| catalogue::find(name).map(|known| (known.profile(), known.duration())));
    let Some((profile, alone)) = found else {
        let subjects = published::SUBJECTS.map(|subject| subject.name).join(", ");
        let names: Vec<&str> = catalogue::all().map(|known| known.name).collect();
        let instead = format!("published analysis: {subjects}\ncatalogue: {}", names.join(", "));
        let name = name.to_owned();
        return Err(UsageError::Unknown { what: "workload", name, instead }.into());
    };
    Ok(Participant { signature, profile, alone })
}
