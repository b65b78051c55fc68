//! How fast tasks run on each kind of device: CSV `task,gpu,speed`, or profiling samples
//! `task,gpu,steps,seconds`.

use super::{fault, read as read_table};
use crate::error::CliError;
use coloc_model::{GpuModel, SignatureId, SpeedTable};
use coloc_sim::Names;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    task: String,
    gpu: GpuModel,
    speed: Option<f64>,
    steps: Option<f64>,
    seconds: Option<f64>,
}

/// What a row says.
enum Given {
    Speed(f64),
    Sample { steps: f64, seconds: f64 },
}

impl Row {
    fn said(&self) -> Result<Given, String> {
        match (self.speed, self.steps, self.seconds) {
            (Some(speed), None, None) if is_sane(speed) => Ok(Given::Speed(speed)),
            (Some(speed), None, None) => Err(format!("column speed: {speed} is not {SANE}")),
            (None, Some(steps), Some(seconds)) => {
                if !(0.0..=1e15).contains(&steps) {
                    return Err(format!("column steps: {steps} is not from 0 to 1e15"));
                }
                if !(0.001..=1e9).contains(&seconds) {
                    return Err(format!("column seconds: {seconds} is not from 0.001 to 1e9"));
                }
                Ok(Given::Sample { steps, seconds })
            }
            _ => Err("expected columns task,gpu,speed or task,gpu,steps,seconds".to_owned()),
        }
    }
}

/// No task is a thousand times as fast as elsewhere, and a task that does not run has speed 0.
fn is_sane(speed: f64) -> bool {
    speed == 0.0 || (0.001..=1000.0).contains(&speed)
}

const SANE: &str = "0, or from 0.001 to 1000";

/// Samples of one task: by kind the last line, steps and seconds; and the kind that was profiled first.
struct Samples {
    reference: GpuModel,
    by_kind: BTreeMap<GpuModel, (u64, f64, f64)>,
}

/// Reads speeds. Speeds of tasks that the trace does not have are passed over, unless it has none of them. Samples of
/// one task on one kind are added up; run times refer to the kind that comes first.
pub(crate) fn read(file: &Path, names: &Names) -> Result<SpeedTable, CliError> {
    let mut speeds = SpeedTable::default();
    let mut samples: BTreeMap<SignatureId, Samples> = BTreeMap::new();
    // Where the speed of a task on a kind was told.
    let mut told: BTreeMap<(&str, GpuModel), u64> = BTreeMap::new();
    let mut known = false;
    let rows = read_table::<Row>(file)?;
    for (line, row) in &rows {
        let fail = |problem: String| fault(file, *line, problem);
        let said = row.said().map_err(fail)?;
        if matches!(said, Given::Speed(_))
            && let Some(before) = told.insert((&row.task, row.gpu), *line)
        {
            let (task, gpu) = (&row.task, row.gpu);
            return Err(fail(format!("the speed of {task:?} on {gpu} is on line {before} too")));
        }
        let Some(task) = names.find(&row.task).map(SignatureId) else { continue };
        known = true;
        match said {
            Given::Speed(speed) => speeds.insert(task, row.gpu, speed),
            Given::Sample { steps, seconds } => {
                let new = || Samples { reference: row.gpu, by_kind: BTreeMap::new() };
                let kinds = &mut samples.entry(task).or_insert_with(new).by_kind;
                let (last, all, spent) = kinds.entry(row.gpu).or_default();
                (*last, *all, *spent) = (*line, *all + steps, *spent + seconds);
            }
        }
    }
    if let Some((line, row)) = rows.first().filter(|_| !known) {
        let problem = format!("no row is about a task of the trace; it has no {:?}", row.task);
        return Err(fault(file, *line, problem));
    }
    for (task, samples) in samples {
        insert_samples(file, names, &mut speeds, task, &samples)?;
    }
    Ok(speeds)
}

/// Turns the samples of a task into speeds against the kind that comes first.
fn insert_samples(
    file: &Path,
    names: &Names,
    speeds: &mut SpeedTable,
    task: SignatureId,
    Samples { reference, by_kind }: &Samples,
) -> Result<(), CliError> {
    let (line, steps, seconds) = by_kind[reference];
    let unit = steps / seconds;
    let name = names.name(task.0);
    if unit == 0.0 {
        let problem = format!("{name:?} made no step on {reference}, which comes first");
        return Err(fault(file, line, problem));
    }
    for (&gpu, &(line, steps, seconds)) in by_kind {
        let speed = steps / seconds / unit;
        if !is_sane(speed) {
            let problem = format!(
                "{name:?} would be {speed} times as fast on {gpu} as on {reference}, which is not {SANE}"
            );
            return Err(fault(file, line, problem));
        }
        speeds.insert(task, gpu, speed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SpeedTable, CliError> {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("a writable file");
        let mut names = Names::default();
        names.number("a");
        read(file.path(), &names)
    }

    #[test]
    fn samples_of_one_kind_are_added_up() {
        let text = "task,gpu,steps,seconds\na,V100-16GB,100,10\na,K80-12GB,20,10\na,K80-12GB,30,10\nb,CPU,1,1\n";
        let table = parse(text).expect("valid samples");
        let speed = |gpu: &str| table.speed(SignatureId(0), gpu.parse().expect("a known model"));
        assert_eq!((speed("V100-16GB"), speed("K80-12GB")), (Some(1.0), Some(0.25)));
        assert_eq!(speed("T4-16GB"), Some(1.0), "nobody looked");
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        for (rows, said) in [
            ("task,gpu,speed\na,V100-16GB,-1\n", "column speed: -1"),
            ("task,gpu,speed\na,V100-16GB,\n", "expected columns"),
            (
                "task,gpu,speed\na,V100-16GB,1e-9\n",
                "line 2: column speed: 0.000000001 is not 0, or",
            ),
            ("task,gpu,speed\na,V100-16GB,1001\n", "line 2: column speed: 1001"),
            (
                "task,gpu,speed\na,V100-16GB,1\na,K80-12GB,2\na,V100-16GB,3\n",
                "line 4: the speed of \"a\" on V100-16GB is on line 2 too",
            ),
            ("task,gpu,speed\nb,V100-16GB,1\n", "line 2: no row is about a task of the trace"),
            (
                "task,gpu,steps,seconds\na,V100-16GB,1,1000\na,K80-12GB,1000,1\n",
                "line 3: \"a\" would be 1000000 times as fast on K80-12GB as on V100-16GB",
            ),
            ("task,gpu,steps,seconds\na,V100-16GB,1,0\n", "column seconds: 0"),
            ("task,gpu,steps,seconds\na,V100-16GB,NaN,1\n", "column steps: NaN"),
            ("task,gpu,steps,seconds\na,V100-16GB,0,1\n", "made no step"),
            ("task,gpu,steps\na,V100-16GB,5\n", "expected columns"),
            ("task,gpu,speed\na,Abacus,1\n", "Abacus"),
            ("gpu,speed\nV100-16GB,1\n", "line 1: missing field"),
            ("task,gpu,speed\r\na,V100-16GB,1\r\na,V100-16GB,-1\r\n", "line 3: column speed: -1"),
            (
                "task,gpu,speed\r\n\r\na,V100-16GB,x\r\n",
                "line 3: column speed: \"x\" is not a number",
            ),
            ("task,gpu,speed\na,V100-16GB\n", "line 2: the row has 2 values, the header 3"),
        ] {
            let message = parse(rows).expect_err("nonsense").to_string();
            assert!(message.contains(said) && message.contains("line"), "{rows:?}: {message}");
            assert!(!message.contains("CSV"), "the library's own words: {message}");
        }
    }
}
