//! AlloX: the slides' example, and a mixed fleet with Gavel's speeds.

use super::lab::Lab;
use super::page::Page;
use super::plot::{self, Series};
use crate::run::Failed;

pub(super) fn write(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    four_jobs(lab, page)?;
    mixed_fleet(lab, page)
}

fn four_jobs(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    page.heading("AlloX: the slides' four jobs");
    page.line("Two fast and two slow devices; 10, 15, 20, 20 s on the fast ones and 20, 25, 100, 90 s on the slow ones.\n");
    let jobs = [("a", 10.0, 20.0), ("b", 15.0, 25.0), ("c", 20.0, 100.0), ("d", 20.0, 90.0)];
    let mut trace = "submit_s,task,duration_s,memory_mib,sm\n".to_owned();
    let mut speeds = "task,gpu,steps,seconds\n".to_owned();
    for (name, fast, slow) in jobs {
        trace.push_str(&format!("0,{name},{fast},1000,0.5\n"));
        speeds.push_str(&format!("{name},V100-16GB,1,{fast}\n{name},K80-12GB,1,{slow}\n"));
    }
    let (trace, speeds) = (lab.file("four.csv", &trace)?, lab.file("speeds.csv", &speeds)?);
    let fleet = "--fleet 2xV100-16GB,2xK80-12GB --place any";
    let mut rows = Vec::new();
    for (name, published, flags) in [
        ("AlloX", "21.25, 25", "--queue allox"),
        ("complete information, but no look at speeds", "53.75, 100", "--queue srtf"),
    ] {
        let answer = lab.simulate(&trace, &format!("{fleet} --speeds {speeds} {flags}"))?;
        let ours = format!("{:.2}, {:.0}", answer.jct(), answer.number("makespan_s"));
        let kind = if ours == published { "reproduced" } else { "differs" };
        rows.push(vec![name.to_owned(), published.to_owned(), ours, kind.to_owned()]);
    }
    page.table(&["policy", "published: mean, makespan, s", "ours", ""], &rows);
    Ok(())
}

const LOADS: [f64; 3] = [0.5, 1.0, 2.0];
const DEVICES: f64 = 36.0;
const USERS: usize = 4;

/// The one-GPU jobs of a Gavel trace, closer together, for four users.
fn trace(lab: &Lab, load: f64) -> Result<String, Failed> {
    let gavel = lab.text("traces/gavel/ee9e8c.trace")?;
    let single: Vec<&str> = gavel.lines().filter(|line| line.ends_with("\t1")).collect();
    let single = lab.file("single.trace", &single.join("\n"))?;
    let whole = lab.path("single.csv");
    lab.coloc(&["trace", "convert", &single, "--format", "gavel", "-o", &whole])?;
    let text = std::fs::read_to_string(&whole).map_err(|e| super::lab::failed(e.to_string()))?;
    let (header, rows) = text.split_once('\n').unwrap_or((&text, ""));
    let column = |name| header.split(',').position(|column| column == name).unwrap_or(0);
    let (submit, user, duration) = (column("submit_s"), column("user"), column("duration_s"));
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    let number = |row: &[&str], column: usize| row[column].parse::<f64>().unwrap_or(0.0);
    let work: f64 = rows.iter().map(|row| number(row, duration)).sum();
    let span = rows.iter().map(|row| number(row, submit)).fold(0.0, f64::max);
    let factor = work / (DEVICES * load) / span;
    let mut text = format!("{header}\n");
    for (index, row) in rows.iter().enumerate() {
        let mut row: Vec<String> = row.iter().map(|value| (*value).to_owned()).collect();
        row[submit] = format!("{:.3}", number(&rows[index], submit) * factor);
        row[user] = format!("u{}", index % USERS);
        text.push_str(&row.join(","));
        text.push('\n');
    }
    lab.file(&format!("single-{load}.csv"), &text)
}

fn mixed_fleet(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    page.heading("AlloX on a mixed fleet");
    page.line("The 975 one-GPU jobs of a Gavel trace, pulled closer together, of four users in turn, on 12 V100, 12 P100 and 12 K80, with Gavel's speeds. Load is work on V100s over what 36 V100s could do until the last arrival, so at 1 the fleet is far behind. Mean completion time in 1000 s; in brackets how many times lower than under DRF+FIFO, and Jain's index of the users' progress. DRF is `fair` with a memory of a second; SRPT preempts; the baselines take the first free device, V100s first. Published: up to 95 % lower than DRF+FIFO at high load, on jobs whose profiles are not public.\n");
    let policies = [
        ("DRF+FIFO", "--queue fair --half-life 1s"),
        ("DRF+SJF", "--queue fair --half-life 1s --fair-order shortest"),
        ("SRPT", "--queue srtf"),
        ("AlloX", "--queue allox"),
        ("AlloX, alpha 0.3", "--queue allox --alpha 0.3"),
        ("AlloX, learning speeds", "--queue allox --learn-speeds"),
    ];
    let traces = LOADS.iter().map(|&load| trace(lab, load)).collect::<Result<Vec<_>, _>>()?;
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    let mut baseline = Vec::new();
    for (name, flags) in policies {
        let (mut row, mut values) = (vec![name.to_owned()], Vec::new());
        for (index, trace) in traces.iter().enumerate() {
            let fleet = "--fleet 12xV100-16GB,12xP100-16GB,12xK80-12GB --place any";
            let answer = lab.simulate(trace, &format!("{fleet} {flags}"))?;
            let jct = answer.jct() / 1000.0;
            if baseline.len() == index {
                baseline.push(jct);
            }
            let (times, jain) = (baseline[index] / jct, answer.number("jain_index"));
            row.push(format!("{jct:.0} ({times:.2}, {jain:.3})"));
            values.push(jct);
        }
        row.push("predicted".to_owned());
        rows.push(row);
        series.push(Series { name: name.to_owned(), values });
    }
    let loads = LOADS.map(|load| format!("{load:.1}"));
    page.table(&["policy", "load 0.5", "load 1.0", "load 2.0", ""], &rows);
    let title = "Mean completion time, 1000 s (predicted)";
    page.plot(
        "allox-load",
        "Mean completion time over load",
        plot::lines(title, "load", &loads, &series),
    );
    Ok(())
}
