//! Order, placement and sharing together, on Alibaba's pods and on a Gavel trace.

use super::lab::Lab;
use super::page::Page;
use crate::run::Failed;

struct Case {
    title: &'static str,
    about: &'static str,
    trace: &'static str,
    flags: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        title: "Order, placement and sharing on a Gavel trace",
        about: "1,181 jobs of one virtual cluster with up to 8 GPUs on 6 x 8 V100-16GB, with the published speeds of gangs on one node and over several. Two limits, 3600 and 36000 GPU s.",
        trace: "traces/gavel/0e4a51.trace",
        flags: "--format gavel --fleet 6x8xV100-16GB --sm-limit 1.5",
    },
    Case {
        title: "Order, placement and sharing on Alibaba's pods",
        about: "6,203 pods that ran on GPUs (v2023) on 4 x 8 V100-16GB, a fleet far too small for them. The same limits.",
        trace: "traces/alibaba/openb_pod_list_default.csv",
        flags: "--format alibaba --fleet 4x8xV100-16GB --sm-limit 1",
    },
];

/// Queue, placement and sharing, and what is new in it.
const STEPS: [(&str, &str, &str, &str); 7] = [
    ("fifo", "any", "exclusive", "whole GPUs, any nodes"),
    ("best-effort", "any", "exclusive", "nobody blocks"),
    ("best-effort", "exclusive", "exclusive", "gangs on one node"),
    ("las2d", "any", "exclusive", "order"),
    ("las2d", "consolidate", "exclusive", "order, gangs on few nodes"),
    ("best-effort", "magm", "mps", "sharing"),
    ("las2d", "magm", "mps", "order and sharing"),
];

pub(super) fn write(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    for Case { title, about, trace, flags } in CASES {
        page.heading(title);
        page.line(&format!("{about} Nobody published this combination. Times in 1000 s; in brackets how many times lower than under best-effort on any nodes.\n"));
        let trace = lab.data(trace);
        let mut answers = Vec::new();
        for (queue, place, share, _) in STEPS {
            let flags = format!(
                "{flags} --queue {queue} --place {place} --share {share} --thresholds 3600,36000"
            );
            answers.push(lab.simulate(&trace, &flags)?);
        }
        let base = answers[1].jct();
        let row = |(step, answer): (&(&str, &str, &str, &str), &super::lab::Answer)| {
            let (queue, place, share, new) = step;
            vec![
                format!("`{queue}` / `{place}` / `{share}`"),
                (*new).to_owned(),
                format!("{:.0} ({:.2})", answer.jct() / 1000.0, base / answer.jct()),
                format!("{:.1}", answer.number("jct_p50_s") / 1000.0),
                format!("{:.0}", answer.number("makespan_s") / 1000.0),
                format!("{:.0}", answer.number("preemptions")),
                "predicted".to_owned(),
            ]
        };
        let rows: Vec<_> = STEPS.iter().zip(&answers).map(row).collect();
        page.table(
            &[
                "queue / place / share",
                "what is in it",
                "mean JCT",
                "median JCT",
                "makespan",
                "preemptions",
                "",
            ],
            &rows,
        );
    }
    Ok(())
}
