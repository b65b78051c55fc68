//! `pmon` and `dmon`: a line a process or device, again and again.

use super::fields::process_name;
use super::{Arguments, lost, selected, unknown};
use crate::tool::{Answer, ToolError, fleet, print};
use coloc_emu::Place;
use coloc_emu::fleet::{ResidentView, State, percent};
use std::time::Duration;

/// How often, of which GPUs, and which groups of columns, by their letters.
struct Rounds {
    count: Option<u64>,
    every: Duration,
    gpus: Option<String>,
    groups: String,
}

fn rounds(arguments: &mut Arguments, known: &[Group], usual: &str) -> Result<Rounds, ToolError> {
    let every = Duration::from_secs(1);
    let mut rounds = Rounds { count: None, every, gpus: None, groups: usual.to_owned() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-c" | "--count" => rounds.count = Some(arguments.number("-c")?),
            "-d" | "--delay" => rounds.every = Duration::from_secs(arguments.period("-d")?),
            "-i" | "--id" => rounds.gpus = Some(arguments.value("-i")?),
            "-s" | "--select" => rounds.groups = arguments.value("-s")?,
            // In which form: there is one form here.
            "-o" | "--options" | "--format" => drop(arguments.value("-o")?),
            _ => return Err(unknown(&argument)),
        }
    }
    let unknown_group = |letter: &char| known.iter().all(|group| group.letter != *letter);
    match rounds.groups.chars().find(unknown_group) {
        Some(letter) => Err(unknown(&format!("-s {letter}"))),
        None => Ok(rounds),
    }
}

/// Columns that are chosen by one letter: their names and units.
struct Group {
    letter: char,
    columns: &'static [(&'static str, &'static str)],
}

const fn columns(letter: char, columns: &'static [(&'static str, &'static str)]) -> Group {
    Group { letter, columns }
}

const BUSY: &[(&str, &str)] =
    &[("sm", "%"), ("mem", "%"), ("enc", "%"), ("dec", "%"), ("jpg", "%"), ("ofa", "%")];

const OF_PROCESSES: [Group; 2] =
    [columns('u', BUSY), columns('m', &[("fb", "MB"), ("ccpm", "MB")])];

const OF_DEVICES: [Group; 7] = [
    columns('p', &[("pwr", "W"), ("gtemp", "C"), ("mtemp", "C")]),
    columns('u', BUSY),
    columns('c', &[("mclk", "MHz"), ("pclk", "MHz")]),
    columns('v', &[("pviol", "%"), ("tviol", "bool")]),
    columns('m', &[("fb", "MB"), ("bar1", "MB"), ("ccpm", "MB")]),
    columns('e', &[("sbecc", "errs"), ("dbecc", "errs"), ("pci", "errs")]),
    columns('t', &[("rxpci", "MB/s"), ("txpci", "MB/s")]),
];

/// The chosen groups, in the order in which they are always shown.
fn chosen<'a>(known: &'a [Group], letters: &'a str) -> impl Iterator<Item = &'a Group> {
    known.iter().filter(move |group| letters.contains(group.letter))
}

/// The two lines of the head: names and units.
fn head(known: &[Group], letters: &str, before: [&str; 2], after: [&str; 2]) -> String {
    let cells = |of: fn(&(&'static str, &'static str)) -> &'static str| -> String {
        let all = chosen(known, letters).flat_map(|group| group.columns);
        all.map(|column| format!(" {:>6}", of(column))).collect()
    };
    let lines = [cells(|column| column.0), cells(|column| column.1)];
    format!("{}{}{}\n{}{}{}", before[0], lines[0], after[0], before[1], lines[1], after[1])
}

fn repeat(
    rounds: &Rounds,
    header: &str,
    lines: impl Fn(&State, u32) -> Result<Vec<String>, ToolError>,
) -> Answer {
    let Rounds { count, every, gpus, .. } = rounds;
    let emulator = fleet()?;
    print(header)?;
    let mut round = 0;
    while count.is_none_or(|count| round < count) {
        if round > 0 {
            std::thread::sleep(*every);
        }
        let state = emulator.lock()?;
        let mut all = Vec::new();
        for gpu in selected(&state, gpus.as_deref())? {
            match state.live_gpu(gpu) {
                Ok(_) => all.extend(lines(&state, gpu)?),
                Err(_) => all.push(lost(&state, gpu)),
            }
        }
        drop(state);
        print(&all.join("\n"))?;
        round += 1;
    }
    Ok(())
}

/// Cells of one width; what is not there is a dash.
fn cells(values: Vec<Option<String>>) -> String {
    let cell = |value: Option<String>| format!(" {:>6}", value.as_deref().unwrap_or("-"));
    values.into_iter().map(cell).collect()
}

pub(super) fn processes(arguments: &mut Arguments) -> Answer {
    let rounds = rounds(arguments, &OF_PROCESSES, "u")?;
    let letters = &rounds.groups;
    let before = ["# gpu         pid   type", "# Idx           #    C/G"];
    let header = head(&OF_PROCESSES, letters, before, ["    command ", "    name "]);
    let row = |resident: &ResidentView| -> String {
        let some = |number: u32| Some(number.to_string());
        let group = |group: &Group| match group.letter {
            'u' => {
                vec![
                    some(percent(resident.active)),
                    some(percent(resident.dram)),
                    None,
                    None,
                    None,
                    None,
                ]
            }
            _ => vec![Some(format!("{:.0}", resident.held.mib())), Some("0".to_owned())],
        };
        chosen(&OF_PROCESSES, letters).map(|one| cells(group(one))).collect()
    };
    let nobody: String = chosen(&OF_PROCESSES, letters)
        .map(|group| cells(vec![None; group.columns.len()]))
        .collect();
    repeat(&rounds, &header, |state, gpu| {
        let residents = state.residents(Place::whole(gpu));
        if residents.is_empty() {
            return Ok(vec![format!("{gpu:>5}           -      -{nobody}    -              ")]);
        }
        let line = |resident: &ResidentView| {
            let name = process_name(resident.pid);
            let short = name.rsplit('/').next().unwrap_or(&name).to_owned();
            let kind = if resident.mps { "M+C" } else { "C" };
            let (pid, row) = (resident.pid, row(resident));
            format!("{gpu:>5} {pid:>11} {kind:>6}{row}    {short:<15}")
        };
        Ok(residents.iter().map(line).collect())
    })
}

pub(super) fn devices(arguments: &mut Arguments) -> Answer {
    let rounds = rounds(arguments, &OF_DEVICES, "puc")?;
    let letters = &rounds.groups;
    let header = head(&OF_DEVICES, letters, ["# gpu", "# Idx"], [" ", " "]);
    repeat(&rounds, &header, |state, index| {
        let groups = chosen(&OF_DEVICES, letters);
        let row = groups.map(|group| device_cells(state, index, group.letter).map(cells));
        let row = row.collect::<Result<String, ToolError>>()?;
        Ok(vec![format!("{index:>5}{row} ")])
    })
}

/// What a device shows in one group of columns.
fn device_cells(state: &State, index: u32, letter: char) -> Result<Vec<Option<String>>, ToolError> {
    let gpu = state.live_gpu(index)?;
    let reading = gpu.reading();
    let some = |text: &dyn std::fmt::Display| Some(text.to_string());
    Ok(match letter {
        'p' => {
            let watts = format!("{:.0}", f64::from(reading.milliwatts) / 1000.0);
            vec![Some(watts), some(&reading.celsius), None]
        }
        'u' => {
            let share = |percent: u32| (!gpu.mig_enabled()).then(|| percent.to_string());
            let mut all = vec![share(reading.gpu_percent), share(reading.memory_percent)];
            all.resize(BUSY.len(), some(&0));
            all
        }
        'c' => vec![some(&reading.memory_mhz), some(&reading.sm_mhz)],
        'v' => vec![some(&u32::from(reading.power_capped)), some(&0)],
        'm' => {
            let used = state.memory(Place::whole(index))?.used;
            vec![Some(format!("{:.0}", used.mib())), None, some(&0)]
        }
        'e' => {
            let (corrected, uncorrected) = gpu.ecc_errors();
            vec![some(&corrected), some(&uncorrected), some(&0)]
        }
        // What goes over the bus is not modelled.
        _ => vec![None, None],
    })
}
