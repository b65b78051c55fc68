//! `dcgmi dmon` and `dcgmi discovery`.

use super::fields::{Look, by_id, first_of_each, value};
use crate::tool::{Answer, ToolError, print};
use coloc_emu::fleet::State;
use coloc_emu::{Emulator, Place};
use std::time::Duration;

const HELP: &str = "usage: dcgmi dmon -e FIELDS [-d MILLISECONDS] [-c COUNT] [-i GPUS]
       dcgmi discovery -l

Emulated by coloc. FIELDS are numbers such as 1001,1002,1003,1005,155. GPUS are indices, or g:INDEX,
or GPU/INSTANCE for a MIG device.";

pub(crate) fn run(arguments: &[String]) -> Answer {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["discovery", "-l"] => discover(),
        ["dmon", ref options @ ..] => dmon(options),
        ["-v" | "--version"] => print("dcgmi  version: 4.0.0 (emulated by coloc)"),
        [] | ["-h" | "--help"] => print(HELP),
        _ => {
            Err(ToolError::new(1, format!("Error: unknown command {:?}\n{HELP}", words.join(" "))))
        }
    }
}

fn discover() -> Answer {
    let emulator = Emulator::from_environment()?;
    let state = emulator.lock()?;
    let rule = "+--------+----------------------------------------------------------------------+";
    let mut lines = vec![
        format!("{} GPUs found.", state.gpu_count()),
        rule.to_owned(),
        "| GPU ID | Device Information                                                   |"
            .to_owned(),
        rule.to_owned(),
    ];
    for (index, gpu) in (0u32..).zip(state.gpus()) {
        let bus = gpu.bus_id(index);
        let facts = [
            ("Name", gpu.board().name.to_owned()),
            ("PCI Bus ID", bus),
            ("Device UUID", gpu.uuid()),
        ];
        for (at, (name, fact)) in facts.into_iter().enumerate() {
            let id = if at == 0 { index.to_string() } else { String::new() };
            lines.push(format!("| {id:<6} | {:<68} |", format!("{name}: {fact}")));
        }
        lines.push(rule.to_owned());
    }
    drop(state);
    print(&lines.join("\n"))
}

/// `DCGM_MAX_INSTANCES_PER_GPU`.
const INSTANCES_PER_GPU: u32 = 8;

struct Watch {
    fields: Vec<u32>,
    every: Duration,
    count: Option<u64>,
    entities: Option<String>,
}

fn parse(options: &[&str]) -> Result<Watch, ToolError> {
    let bad = |what: &str| ToolError::new(1, format!("Error: bad value {what:?}\n{HELP}"));
    let mut watch =
        Watch { fields: Vec::new(), every: Duration::from_secs(1), count: None, entities: None };
    let mut rest = options.iter();
    while let Some(&option) = rest.next() {
        let mut next = || rest.next().copied().ok_or_else(|| bad(option));
        match option {
            "-e" | "--field-id" => {
                let numbers = next()?.split(',').map(|id| id.trim().parse().map_err(|_| bad(id)));
                watch.fields = numbers.collect::<Result<_, _>>()?;
            }
            "-d" | "--delay" => {
                let text = next()?;
                let delay = text.parse().ok().filter(|delay| *delay > 0);
                watch.every = Duration::from_millis(delay.ok_or_else(|| bad(text))?);
            }
            "-c" | "--count" => {
                let text = next()?;
                watch.count = Some(text.parse().map_err(|_| bad(text))?).filter(|count| *count > 0);
            }
            "-i" | "--gpu-id" | "--entity-id" => watch.entities = Some(next()?.to_owned()),
            _ => return Err(bad(option)),
        }
    }
    if watch.fields.is_empty() {
        return Err(ToolError::new(1, format!("Error: -e is needed\n{HELP}")));
    }
    if let Some(unknown) = watch.fields.iter().find(|id| by_id(**id).is_none()) {
        return Err(ToolError::new(1, format!("Error: field {unknown} is not known here")));
    }
    Ok(watch)
}

/// What is watched, and what it is called in the first column.
fn entities(state: &State, wanted: Option<&str>) -> Result<Vec<(String, Place)>, ToolError> {
    let mut all = Vec::new();
    for (index, gpu) in (0u32..).zip(state.gpus()) {
        all.push((format!("GPU {index}"), index.to_string(), Place::whole(index)));
        // DCGM numbers instances through all GPUs, with room for eight on each.
        for (at, mig) in (0u32..).zip(first_of_each(gpu)) {
            let place = Place { gpu: index, mig: Some(mig) };
            let number = index * INSTANCES_PER_GPU + at;
            all.push((format!("GPU-I {number}"), format!("{index}/{}", mig.gi), place));
        }
    }
    let Some(wanted) = wanted else {
        let whole = all.into_iter().filter(|(.., place)| place.mig.is_none());
        return Ok(whole.map(|(name, _, place)| (name, place)).collect());
    };
    let find = |key: &str| {
        let key = key.trim().trim_start_matches("g:").trim_start_matches("i:");
        let found = all.iter().find(|(_, id, _)| id == key);
        found
            .map(|(name, _, place)| (name.clone(), *place))
            .ok_or_else(|| ToolError::new(1, format!("Error: no entity {key:?}")))
    };
    wanted.split(',').map(find).collect()
}

fn dmon(options: &[&str]) -> Answer {
    let watch = parse(options)?;
    let emulator = Emulator::from_environment()?;
    let columns: String = watch
        .fields
        .iter()
        .filter_map(|id| by_id(*id))
        .map(|field| format!("{:<12}", field.column))
        .collect();
    print(format!("#Entity   {columns}").trim_end())?;
    print(&format!("ID{}", " ".repeat(8)))?;
    let mut looks: Vec<Option<Look>> = Vec::new();
    let mut round = 0;
    while watch.count.is_none_or(|count| round < count) {
        if round > 0 {
            std::thread::sleep(watch.every);
        }
        let state = emulator.lock()?;
        let mut lines = Vec::new();
        let entities = entities(&state, watch.entities.as_deref())?;
        looks.resize(entities.len(), None);
        for ((name, place), look) in entities.into_iter().zip(&mut looks) {
            let gpu = state.live_gpu(place.gpu).ok();
            let mut values = String::new();
            for id in &watch.fields {
                // A GPU that is lost says nothing; the others do.
                let text = match gpu {
                    Some(_) => value(&state, place, *id, *look)?,
                    None => None,
                };
                values += &format!("{:<12}", text.unwrap_or_else(|| "N/A".to_owned()));
            }
            *look = gpu.map(|gpu| Look::at(&state, gpu));
            lines.push(format!("{name:<10}{values}").trim_end().to_owned());
        }
        drop(state);
        print(&lines.join("\n"))?;
        round += 1;
    }
    Ok(())
}
