//! `pmon` and `dmon`: a line a process or device, again and again.

use super::fields::process_name;
use super::{Arguments, lost, selected, unknown};
use crate::tool::{Answer, ToolError, print};
use coloc_emu::fleet::{State, percent};
use coloc_emu::{Emulator, Place};
use std::time::Duration;

/// How often, and of which GPUs.
struct Rounds {
    count: Option<u64>,
    every: Duration,
    gpus: Option<String>,
}

fn rounds(arguments: &mut Arguments) -> Result<Rounds, ToolError> {
    let mut rounds = Rounds { count: None, every: Duration::from_secs(1), gpus: None };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-c" | "--count" => rounds.count = Some(arguments.number("-c")?),
            "-d" | "--delay" => rounds.every = Duration::from_secs(arguments.period("-d")?),
            "-i" | "--id" => rounds.gpus = Some(arguments.value("-i")?),
            // Which columns, and in which form: there is one form here.
            "-s" | "--select" | "-o" | "--options" | "--format" => drop(arguments.value("-s")?),
            _ => return Err(unknown(&argument)),
        }
    }
    Ok(rounds)
}

fn repeat(
    arguments: &mut Arguments,
    header: &str,
    lines: impl Fn(&State, u32) -> Result<Vec<String>, ToolError>,
) -> Answer {
    let Rounds { count, every, gpus } = rounds(arguments)?;
    let emulator = Emulator::from_environment()?;
    print(header)?;
    let mut round = 0;
    while count.is_none_or(|count| round < count) {
        if round > 0 {
            std::thread::sleep(every);
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

pub(super) fn processes(arguments: &mut Arguments) -> Answer {
    let header = "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command \n\
                  # Idx           #    C/G      %      %      %      %      %      %    name ";
    repeat(arguments, header, |state, gpu| {
        let residents = state.residents(Place::whole(gpu));
        if residents.is_empty() {
            return Ok(vec![format!(
                "{gpu:>5}          -     -      -      -      -      -      -      -    -              "
            )]);
        }
        let line = |resident: &coloc_emu::fleet::ResidentView| {
            let name = process_name(resident.pid);
            let short = name.rsplit('/').next().unwrap_or(&name).to_owned();
            let kind = if resident.mps { "M+C" } else { "C" };
            format!(
                "{gpu:>5} {:>11} {kind:>5} {:>6} {:>6}      -      -      -      -    {short:<15}",
                resident.pid,
                percent(resident.active),
                percent(resident.dram)
            )
        };
        Ok(residents.iter().map(line).collect())
    })
}

pub(super) fn devices(arguments: &mut Arguments) -> Answer {
    let header = "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk \n\
                  # Idx      W      C      C      %      %      %      %      %      %    MHz    MHz ";
    repeat(arguments, header, |state, index| {
        let gpu = state.live_gpu(index)?;
        let reading = gpu.reading();
        let share = |percent: u32| match gpu.mig_enabled() {
            true => "-".to_owned(),
            false => percent.to_string(),
        };
        Ok(vec![format!(
            "{index:>5} {:>6.0} {:>6}      - {:>6} {:>6}      0      0      0      0 {:>6} {:>6} ",
            f64::from(reading.milliwatts) / 1000.0,
            reading.celsius,
            share(reading.gpu_percent),
            share(reading.memory_percent),
            reading.memory_mhz,
            reading.sm_mhz
        )])
    })
}
