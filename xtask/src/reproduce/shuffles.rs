//! Preset coloc beside the others on the same knowledge, as a mean over a trace and shuffles of its arrivals.

use super::lab::Lab;
use super::page::Page;
use crate::run::Failed;

/// A trace, in how many shuffles beside itself it is played, and on what.
struct Set {
    title: &'static str,
    trace: &'static str,
    format: &'static str,
    shuffles: u32,
    flags: &'static str,
}

const fn carma(title: &'static str, trace: &'static str, flags: &'static str) -> Set {
    Set { title, trace, format: "carma", shuffles: 12, flags }
}

const SETS: [Set; 8] = [
    carma("mix90", "traces/carma/mix90.csv", "--fleet 4xA100-40GB --estimator oracle"),
    carma("mix90, replay", "traces/carma/mix90.csv", "--fleet 4xA100-40GB --estimator replay"),
    carma("heavy60", "traces/carma/heavy60.csv", "--fleet 4xA100-40GB --estimator oracle"),
    carma("heavy60, replay", "traces/carma/heavy60.csv", "--fleet 4xA100-40GB --estimator replay"),
    carma("t1", "traces/carma/t1.csv", "--fleet 4xA100-40GB --estimator oracle"),
    carma("t1, replay", "traces/carma/t1.csv", "--fleet 4xA100-40GB --estimator replay"),
    Set {
        title: "Gavel",
        trace: "traces/gavel/0e4a51.trace",
        format: "gavel",
        shuffles: 3,
        flags: "--fleet 6x8xV100-16GB --estimator oracle",
    },
    Set {
        title: "Alibaba",
        trace: "traces/alibaba/openb_pod_list_default.csv",
        format: "alibaba",
        shuffles: 3,
        flags: "--fleet 4x8xV100-16GB --estimator oracle",
    },
];

/// Policies; the preemptive ones have tasks that save their work, at a cost.
const POLICIES: [(&str, &str); 5] = [
    ("`carma-v2`", "--preset carma-v2"),
    ("`coloc`", "--preset coloc"),
    (
        "`coloc`, tasks save",
        "--preset coloc --checkpoint all --preempt-cost 30 --preempt-cost-per-gib 1",
    ),
    (
        "`las2d`, `magm`, MPS, tasks save",
        "--queue las2d --place magm --share mps --sm-limit 1.4 --thresholds 3600,36000 --preempt-cost 30 --preempt-cost-per-gib 1",
    ),
    (
        "`gittins2d`, `magm`, MPS, tasks save",
        "--queue gittins2d --place magm --share mps --sm-limit 1.4 --preempt-cost 30 --preempt-cost-per-gib 1",
    ),
];

pub(super) fn write(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    page.heading("Preset coloc beside others, on equal knowledge");
    page.line("Each figure is a mean over the trace and shuffles of its arrivals (12; of the two large traces 3), with the standard deviation between them: one trace alone says little, since a small change of one decision changes all that follow. All policies of a set are told the same of memory, and none is told run times. Where tasks save their work, a preemption costs 30 s and 1 s for each GiB; otherwise `coloc` preempts nothing. Minutes.\n");
    let mut rows = Vec::new();
    for Set { title, trace, format, shuffles, flags } in SETS {
        let mut files = Vec::new();
        for seed in 0..=shuffles {
            let file = lab.path(&format!("shuffle-{seed}.csv"));
            let (original, number) = (lab.data(trace), seed.to_string());
            let mut words = vec!["trace", "convert", &original, "--format", format, "-o", &file];
            if seed > 0 {
                words.extend(["--shuffle", &number]);
            }
            lab.coloc(&words)?;
            files.push(file);
        }
        for (policy, chosen) in POLICIES {
            let (mut makespans, mut jcts) = (Vec::new(), Vec::new());
            for file in &files {
                let answer = lab.simulate(file, &format!("{flags} {chosen}"))?;
                makespans.push(answer.number("makespan_s") / 60.0);
                jcts.push(answer.jct() / 60.0);
            }
            let predicted = "predicted".to_owned();
            rows.push(vec![
                title.to_owned(),
                policy.to_owned(),
                spread(&makespans),
                spread(&jcts),
                predicted,
            ]);
        }
    }
    page.table(&["set", "policy", "makespan", "mean JCT", ""], &rows);
    Ok(())
}

/// Mean and standard deviation.
fn spread(values: &[f64]) -> String {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
    let digits = usize::from(mean < 100.0);
    format!("{mean:.digits$} ± {deviation:.digits$}")
}
