//! `coloc trace`: make, inspect and convert traces.

use crate::args::input::{TraceFormat, read_samples, read_trace};
use crate::error::CliError;
use crate::output::summary::span;
use crate::output::table::table;
use crate::output::{Answer, files, print_text};
use clap::{Args, Subcommand};
use coloc_sim::Trace;
use coloc_sim::trace::{self, Generator, Sampled};
use serde::Serialize;
use std::path::PathBuf;

/// Make, inspect and convert traces
#[derive(Args, Debug)]
pub(crate) struct TraceVerb {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Make a synthetic trace: Philly-like run times and bursts, tasks from the catalogue
    Generate {
        /// How many tasks
        #[arg(long)]
        tasks: usize,
        /// How many GPUs of A100-40GB class the load refers to
        #[arg(long)]
        gpus: u32,
        /// Demand of all tasks run exclusively, over what the GPUs can do until the last arrival
        #[arg(long, default_value_t = 0.9)]
        load: f64,
        /// The most GPUs of one task
        #[arg(long, default_value_t = 4)]
        widest: u32,
        /// Makes it reproducible
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Draw GPU seconds from the duration column of a CSV instead; every task is alone on its GPUs
        #[arg(long, value_name = "SAMPLES.csv")]
        samples: Option<PathBuf>,
        /// Where to write it
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Say what a trace holds
    Info {
        /// The trace
        trace: PathBuf,
        /// Its format
        #[arg(long, value_enum, default_value = "coloc")]
        format: TraceFormat,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a trace in our own format, with everything about each task
    Convert {
        /// The trace
        trace: PathBuf,
        /// Its format
        #[arg(long, value_enum, default_value = "coloc")]
        format: TraceFormat,
        /// Deal the tasks to the arrivals anew, by this seed: policies are compared over several of them
        #[arg(long, value_name = "SEED")]
        shuffle: Option<u64>,
        /// Where to write it
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

impl TraceVerb {
    pub(crate) fn run(self) -> Result<(), CliError> {
        match self.action {
            Action::Generate { tasks, gpus, load, widest, seed, samples, output } => {
                let generated = match samples {
                    None => Generator { tasks, gpus, load, widest, seed }.generate()?,
                    Some(file) => {
                        let samples = read_samples(&file)?;
                        Sampled { samples, tasks, gpus, load, widest, seed }.generate()?
                    }
                };
                files::write(&output, |out| trace::write(&generated, out))
            }
            Action::Info { trace, format, json } => {
                let info = Info::of(&read_trace(&trace, format)?);
                if json { Answer { body: &info, wall_s: None }.print() } else { info.print() }
            }
            Action::Convert { trace, format, shuffle, output } => {
                let read = read_trace(&trace, format)?;
                let read = shuffle.map_or(read.clone(), |seed| read.shuffled(seed));
                files::write(&output, |out| trace::write(&read, out))
            }
        }
    }
}

/// What a trace holds.
#[derive(Serialize)]
struct Info {
    tasks: usize,
    users: usize,
    names: usize,
    last_submit_s: f64,
    gpu_seconds: f64,
    /// SM activity times seconds times GPUs.
    sm_seconds: f64,
    classes: Vec<ClassInfo>,
}

#[derive(Serialize)]
struct ClassInfo {
    class: String,
    tasks: usize,
    gpu_seconds: f64,
    memory_mean_mib: f64,
    sm_mean: f64,
}

impl Info {
    fn of(trace: &Trace) -> Self {
        let mut classes: Vec<ClassInfo> = Vec::new();
        let (mut gpu_seconds, mut sm_seconds) = (0.0, 0.0);
        for task in trace.tasks() {
            let name = trace.class(task).to_string();
            let index = classes.iter().position(|class| class.class == name).unwrap_or_else(|| {
                let (memory_mean_mib, sm_mean) = (0.0, 0.0);
                let class = name.clone();
                classes.push(ClassInfo {
                    class,
                    tasks: 0,
                    gpu_seconds: 0.0,
                    memory_mean_mib,
                    sm_mean,
                });
                classes.len() - 1
            });
            let class = &mut classes[index];
            let work = task.duration.secs() * f64::from(task.gpus);
            let sm = task.profile.activity.sm.get();
            class.tasks += 1;
            class.gpu_seconds += work;
            let share = 1.0 / class.tasks as f64;
            class.memory_mean_mib += share * (task.profile.memory.mib() - class.memory_mean_mib);
            class.sm_mean += share * (sm - class.sm_mean);
            gpu_seconds += work;
            sm_seconds += work * sm;
        }
        classes.sort_by(|a, b| a.memory_mean_mib.total_cmp(&b.memory_mean_mib));
        Info {
            tasks: trace.tasks().len(),
            users: trace.users().len(),
            names: trace.names().len(),
            last_submit_s: trace.tasks().last().map_or(0.0, |task| task.submit.secs()),
            gpu_seconds,
            sm_seconds,
            classes,
        }
    }

    fn print(&self) -> Result<(), CliError> {
        let rows = self.classes.iter().map(|class| {
            vec![
                class.class.clone(),
                class.tasks.to_string(),
                format!("{:.1} h", class.gpu_seconds / 3600.0),
                format!("{:.1} GiB", class.memory_mean_mib / 1024.0),
                format!("{:.2}", class.sm_mean),
            ]
        });
        print_text(&format!(
            "{} tasks of {} kinds by {} users, submitted over {}\n\
             {:.1} GPU hours of work, {:.1} of them with SMs busy\n\n{}",
            self.tasks,
            self.names,
            self.users,
            span(self.last_submit_s),
            self.gpu_seconds / 3600.0,
            self.sm_seconds / 3600.0,
            table(&["class", "tasks", "GPU time", "mean memory", "mean SM activity"], rows)
        ))
    }
}
