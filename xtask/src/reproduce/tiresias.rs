//! Tiresias: its simulator's results, the slides' example, and what its policies do under load.

use super::lab::Lab;
use super::page::Page;
use super::plot::{self, Series};
use crate::run::Failed;

const SAMPLES: &str = "traces/tiresias/yarn-gput1000.csv";

pub(super) fn write(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    identity(lab, page)?;
    three_jobs(lab, page)?;
    under_load(lab, page)
}

/// The simulator's own names, ours, and the flags that follow it to the letter.
const SCHEDULES: [(&str, &str); 7] = [
    ("fifo", "--queue fifo"),
    ("fjf", "--queue best-effort"),
    ("shortest", "--queue srtf"),
    ("shortest-gpu", "--queue srsf"),
    ("dlas-gpu", "--preset tiresias-sim --queue las2d"),
    ("dlas-gpu-8", "--preset tiresias-sim --queue las2d --promote 8"),
    ("dlas-gpu-gittins", "--preset tiresias-sim --queue gittins2d"),
];

fn identity(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    page.heading("Tiresias: its simulator on its own 60 jobs");
    page.line("Free-GPU counting. Published means: what the original simulator prints. Mean, median and 95th percentile of completion times and the makespan in seconds.\n");
    let reference = lab.text("traces/tiresias/reference_results.csv")?;
    let trace = lab.data("traces/tiresias/60_job.csv");
    let mut rows = Vec::new();
    for line in reference.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, cluster, schedule, _, _, published @ ..] = &fields[..] else { continue };
        let Some((_, flags)) = SCHEDULES.iter().find(|(name, _)| name == schedule) else {
            continue;
        };
        let nodes = cluster.trim_start_matches('n').trim_end_matches("g4");
        let history = lab.data(SAMPLES);
        let flags = format!(
            "--format tiresias --fleet {nodes}x4xP100-16GB --place any {flags} --history {history}"
        );
        let answer = lab.simulate(&trace, &flags)?;
        let figure = |field: &str| answer.number(field);
        let ours = [
            format!("{:.2}", figure("jct_mean_s")),
            format!("{:.1}", figure("jct_p50_s")),
            format!("{:.0}", figure("jct_p95_s")),
            format!("{:.0}", figure("makespan_s")),
            format!("{:.0}", figure("preemptions")),
        ];
        let same = published.iter().zip(&ours).all(|(published, ours)| {
            let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
            (number(published) - number(ours)).abs() < 0.011
        });
        let kind = if same { "reproduced" } else { "differs" };
        let (published, ours) = (published.join(", "), ours.join(", "));
        rows.push(vec![
            cluster.to_string(),
            schedule.to_string(),
            published,
            ours,
            kind.to_owned(),
        ]);
    }
    page.table(
        &["cluster", "schedule", "published: mean, p50, p95, makespan, preemptions", "ours", ""],
        &rows,
    );
    Ok(())
}

fn three_jobs(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    page.heading("Tiresias: the slides' three jobs");
    page.line("2 GPUs; 2 GPUs x 2 s, 1 x 8 s, 2 x 6 s; history 4, 8, 12 GPU s. Second-hand notes give two of the values, without the quantum. [cluster.md](cluster.md) draws the schedules.\n");
    let trace = lab.file("three.csv", "num_gpu,submit_time,duration\n2,0,2\n1,0,8\n2,0,6\n")?;
    let history = lab.file("history.csv", "duration\n4\n8\n12\n")?;
    let mut rows = Vec::new();
    for (name, published, flags) in [
        ("SRSF", 9.33, "--queue srsf".to_owned()),
        ("2D-LAS, quantum 1 s", 11.7, "--queue las2d --quantum 1".to_owned()),
        (
            "2D-Gittins, limit 4 GPU s",
            10.0,
            format!("--queue gittins2d --thresholds 4 --history {history}"),
        ),
    ] {
        let flags = format!("--format tiresias --fleet 1x2xP100-16GB --place any {flags}");
        let ours = lab.simulate(&trace, &flags)?.jct();
        // The notes have one digit after the point.
        let kind = if (ours - published).abs() < 0.051 { "reproduced" } else { "differs" };
        let row = [name.to_owned(), published.to_string(), format!("{ours:.2}"), kind.to_owned()];
        rows.push(row.to_vec());
    }
    page.table(&["policy", "published mean, s", "ours", ""], &rows);
    Ok(())
}

const LOADS: [&str; 4] = ["0.8", "1.2", "1.5", "2.0"];
const SEEDS: [&str; 3] = ["1", "2", "3"];

fn under_load(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    page.heading("Tiresias under load");
    page.line("Jobs with the service of the published samples on 15 x 4 GPUs, any free GPUs. How many times lower the mean completion time is than under FIFO. Published for the original simulator on other synthetic traces of the same samples under heavy load: 2D-LAS 3.4-5.8, 2D-Gittins 4.1-6.5, SRSF 5.0-7.9. The longer an overload lasts, the further FIFO falls behind: 4,000 jobs show that.\n");
    let (history, samples) = (lab.data(SAMPLES), lab.data(SAMPLES));
    let policies = [
        ("SRSF", "--queue srsf".to_owned()),
        ("2D-LAS", "--preset tiresias".to_owned()),
        ("2D-Gittins", format!("--preset tiresias --queue gittins2d --history {history}")),
        ("2D-LAS, simulator's", "--preset tiresias-sim".to_owned()),
        (
            "2D-Gittins, simulator's",
            format!("--preset tiresias-sim --queue gittins2d --history {history}"),
        ),
    ];
    let mut rows = Vec::new();
    let mut means = vec![vec![0.0; LOADS.len()]; policies.len()];
    let few = LOADS.iter().enumerate().map(|(column, load)| ("2000", load, Some(column)));
    // Where no task has to wait for long, there is nothing to last.
    let many = LOADS[1..].iter().map(|load| ("4000", load, None));
    for (jobs, load, column) in few.chain(many) {
        for seed in SEEDS {
            let trace = lab.path("load.csv");
            let made = ["trace", "generate", "--tasks", jobs, "--gpus", "60", "--widest", "8"];
            let more = ["--load", load, "--seed", seed, "--samples", &samples, "-o", &trace];
            lab.coloc(&[&made[..], &more[..]].concat())?;
            let run = |flags: &str| {
                lab.simulate(&trace, &format!("--fleet 15x4xP100-16GB --place any {flags}"))
            };
            let fifo = run("--queue fifo")?.jct();
            let mut row = [jobs, load, seed].map(str::to_owned).to_vec();
            row.push(format!("{fifo:.0}"));
            for (index, (_, flags)) in policies.iter().enumerate() {
                let times = fifo / run(flags)?.jct();
                if let Some(column) = column {
                    means[index][column] += times / SEEDS.len() as f64;
                }
                row.push(format!("{times:.2}"));
            }
            row.push("predicted".to_owned());
            rows.push(row);
        }
    }
    let mut head = vec!["jobs", "load", "seed", "FIFO, s"];
    head.extend(policies.iter().map(|(name, _)| *name));
    head.push("");
    page.table(&head, &rows);
    let series: Vec<Series> = policies
        .iter()
        .zip(means)
        .map(|((name, _), values)| Series { name: (*name).to_owned(), values })
        .collect();
    let marks = LOADS.map(str::to_owned);
    let svg = plot::lines(
        "Times better than FIFO, 2,000 jobs, mean of three seeds (predicted)",
        "load",
        &marks,
        &series,
    );
    page.plot("tiresias-load", "Times better than FIFO over load", svg);
    Ok(())
}
