//! `nvidia-smi`: the queries that people and programs use, from the fleet's state.

mod detail;
mod fields;
mod mig;
mod monitor;
mod query;
mod summary;
mod topology;
mod tree;

use crate::tool::{Answer, ToolError, fleet, print};
use coloc_emu::Emulator;
use coloc_emu::fleet::{Gpu, State};
use std::time::Duration;

const HELP: &str = "NVIDIA System Management Interface, emulated by coloc

    nvidia-smi                                   what is on the GPUs
    nvidia-smi -L                                list GPUs and MIG devices
    nvidia-smi -q [-x] [-d SECTIONS] [-f FILE]   all there is to know, as text or XML
    nvidia-smi --help-query-gpu                  the fields
    nvidia-smi --query-gpu=FIELDS --format=csv[,noheader][,nounits]
    nvidia-smi --query-compute-apps=FIELDS --format=csv[,noheader][,nounits]
    nvidia-smi pmon [-s um] [-c COUNT] [-d SECONDS]       processes
    nvidia-smi dmon [-s pucvmet] [-c COUNT] [-d SECONDS]  devices
    nvidia-smi topo -m                           how GPUs are connected
    nvidia-smi -mig 0|1                          MIG mode
    nvidia-smi mig -lgip|-lgipp|-lgi|-lcip|-lci|-cgi PROFILES [-C]|-cci|-dci|-dgi
    nvidia-smi -pl WATTS | -pm 0|1 | -c MODE     settings

    -i GPUS   only these: indices, UUIDs or bus ids, separated by commas
    -l SECONDS, -lms MILLISECONDS                again and again
    -h        this text";

/// Arguments taken one by one, `--name=value` taken apart.
pub(super) struct Arguments {
    rest: std::vec::IntoIter<String>,
}

impl Arguments {
    fn new(arguments: &[String]) -> Self {
        let mut apart = Vec::new();
        for argument in arguments {
            match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => {
                    apart.extend([name.to_owned(), value.to_owned()]);
                }
                _ => apart.push(argument.clone()),
            }
        }
        Arguments { rest: apart.into_iter() }
    }

    pub(super) fn next(&mut self) -> Option<String> {
        self.rest.next()
    }

    /// The next argument, unless it is an option.
    pub(super) fn optional(&mut self) -> Option<String> {
        let next = self.rest.as_slice().first()?;
        if next.starts_with('-') { None } else { self.rest.next() }
    }

    pub(super) fn value(&mut self, of: &str) -> Result<String, ToolError> {
        self.rest.next().ok_or_else(|| {
            ToolError::new(2, format!("Option {of} needs a value. Run 'nvidia-smi -h'."))
        })
    }

    /// A number above zero: no query is repeated without a pause.
    pub(super) fn period(&mut self, of: &str) -> Result<u64, ToolError> {
        match self.number(of)? {
            0 => Err(ToolError::new(2, format!("Invalid value 0 for {of}."))),
            period => Ok(period),
        }
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self, of: &str) -> Result<T, ToolError> {
        let text = self.value(of)?;
        text.parse().map_err(|_| ToolError::new(2, format!("Invalid value {text:?} for {of}.")))
    }
}

pub(super) fn unknown(argument: &str) -> ToolError {
    ToolError::new(
        2,
        format!(
            "Invalid combination of input arguments: {argument:?}. Please run 'nvidia-smi -h' for help."
        ),
    )
}

/// Which GPUs a command is about: all unless some were named.
pub(super) fn selected(state: &State, names: Option<&str>) -> Result<Vec<u32>, ToolError> {
    let Some(names) = names else { return Ok((0..state.gpu_count()).collect()) };
    let one = |name: &str| {
        let matches = |index: u32, gpu: &Gpu| {
            let bus = gpu.bus_id(index);
            index.to_string() == name
                || gpu.uuid() == name
                || bus.eq_ignore_ascii_case(name)
                || bus[4..].eq_ignore_ascii_case(name)
        };
        let found = (0u32..).zip(state.gpus()).find(|&(index, gpu)| matches(index, gpu));
        found
            .map(|(index, _)| index)
            .ok_or_else(|| ToolError::new(6, format!("No devices were found: {name:?}")))
    };
    names.split(',').map(str::trim).map(one).collect()
}

/// What is shown.
enum View {
    List,
    Detail,
    Gpus(String),
    Apps(String),
}

/// What is changed.
enum Setting {
    MigMode(bool),
    PowerLimit(f64),
    Persistence(bool),
    ComputeMode(u32),
}

pub(crate) fn run(arguments: &[String]) -> Answer {
    let mut rest = Arguments::new(arguments);
    match arguments.first().map(String::as_str) {
        Some("-h" | "--help" | "help") => return print(HELP),
        Some("--version") => {
            return print(&format!("NVIDIA-SMI version  : {} (emulated)", version()));
        }
        Some("--help-query-gpu") => {
            return print(&format!("Fields of --query-gpu:\n\n{}", fields::HELP));
        }
        Some("topo") => return topology::run(skip_one(&mut rest)),
        Some("pmon") => return monitor::processes(skip_one(&mut rest)),
        Some("dmon") => return monitor::devices(skip_one(&mut rest)),
        Some("mig") => return mig::run(skip_one(&mut rest)),
        _ => {}
    }
    let mut command = Command::default();
    while let Some(argument) = rest.next() {
        command.take(&argument, &mut rest)?;
    }
    let emulator = fleet()?;
    if let Some(setting) = &command.setting {
        return command.set(&emulator, setting);
    }
    let mut first = true;
    loop {
        let text = command.show(&*emulator.lock()?, first)?;
        match &command.file {
            Some(file) => write(file, &(text + "\n"), first).map_err(|error| {
                ToolError::new(1, format!("Unable to write to the file {file:?}: {error}"))
            })?,
            None => print(&text)?,
        }
        first = false;
        match command.every {
            Some(span) => std::thread::sleep(span),
            None => return Ok(()),
        }
    }
}

/// What is looked at again goes on where the last look ended.
fn write(file: &str, text: &str, first: bool) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::File::options();
    let options = options.create(true).write(true).truncate(first).append(!first);
    options.open(file)?.write_all(text.as_bytes())
}

fn version() -> &'static str {
    coloc_emu::board::DRIVER_VERSION
}

fn skip_one(arguments: &mut Arguments) -> &mut Arguments {
    arguments.next();
    arguments
}

#[derive(Default)]
struct Command {
    view: Option<View>,
    setting: Option<Setting>,
    gpus: Option<String>,
    format: Option<String>,
    xml: bool,
    file: Option<String>,
    /// The parts of `-q` that are wanted, by their tags; without any, all.
    sections: Option<Vec<&'static str>>,
    every: Option<Duration>,
}

impl Command {
    fn take(&mut self, argument: &str, rest: &mut Arguments) -> Result<(), ToolError> {
        match argument {
            "-L" | "--list-gpus" => self.view = Some(View::List),
            "-q" | "--query" => self.view = Some(View::Detail),
            "--query-gpu" => self.view = Some(View::Gpus(rest.value(argument)?)),
            "--query-compute-apps" => self.view = Some(View::Apps(rest.value(argument)?)),
            "--format" => self.format = Some(rest.value(argument)?),
            "-i" | "--id" => self.gpus = Some(rest.value(argument)?),
            "-l" | "--loop" => {
                let seconds = rest.optional().map_or(Ok(5), |text| text.parse::<u64>());
                let seconds = seconds.ok().filter(|&seconds| seconds > 0);
                let seconds = seconds.ok_or_else(|| unknown(argument))?;
                self.every = Some(Duration::from_secs(seconds));
            }
            "-lms" | "--loop-ms" => {
                self.every = Some(Duration::from_millis(rest.period(argument)?));
            }
            "-x" | "--xml-format" => self.xml = true,
            "-f" | "--filename" => self.file = Some(rest.value(argument)?),
            "-d" | "--display" => {
                self.sections = Some(detail::sections(&rest.value(argument)?)?);
            }
            "-mig" | "--multi-instance-gpu" => {
                self.setting = Some(Setting::MigMode(switch(&rest.value(argument)?)?));
            }
            "-pl" | "--power-limit" => {
                self.setting = Some(Setting::PowerLimit(rest.number(argument)?));
            }
            "-pm" | "--persistence-mode" => {
                self.setting = Some(Setting::Persistence(switch(&rest.value(argument)?)?));
            }
            "-c" | "--compute-mode" => {
                let mode = rest.value(argument)?;
                self.setting = Some(Setting::ComputeMode(compute_mode(&mode)?));
            }
            _ => return Err(unknown(argument)),
        }
        Ok(())
    }

    fn show(&self, state: &State, first: bool) -> Result<String, ToolError> {
        let gpus = selected(state, self.gpus.as_deref())?;
        let format = query::Format::parse(self.format.as_deref())?;
        // A table that goes on has one head.
        let format = if first { format } else { format.without_header() };
        match &self.view {
            None => summary::render(state, &gpus),
            Some(View::List) => list(state, &gpus),
            Some(View::Detail) if self.xml => detail::render_xml(state, &gpus),
            Some(View::Detail) => detail::render(state, &gpus, self.sections.as_deref()),
            Some(View::Gpus(fields)) => query::gpus(state, &gpus, fields, format),
            Some(View::Apps(fields)) => query::apps(state, &gpus, fields, format),
        }
    }

    fn set(&self, emulator: &Emulator, setting: &Setting) -> Answer {
        let gpus = selected(&*emulator.lock()?, self.gpus.as_deref())?;
        for gpu in gpus {
            let mut state = emulator.lock()?;
            let bus = state.gpu(gpu)?.bus_id(gpu);
            let done = match setting {
                Setting::MigMode(on) => {
                    let verb = if *on { "enable" } else { "disable" };
                    let what = format!("{verb} MIG Mode for GPU {bus}");
                    let done = state.set_mig_mode(gpu, *on);
                    done.map_err(|error| ToolError::unable(&error, &what))?;
                    let word = if *on { "Enabled" } else { "Disabled" };
                    format!("{word} MIG Mode for GPU {bus}")
                }
                Setting::PowerLimit(watts) => {
                    let before = state.gpu(gpu)?.limit_watts();
                    let what = format!("set the power limit of GPU {bus}");
                    let done = state.set_power_limit(gpu, *watts);
                    done.map_err(|error| ToolError::unable(&error, &what))?;
                    format!("Power limit for GPU {bus} was set to {watts:.2} W from {before:.2} W.")
                }
                Setting::Persistence(on) => {
                    let what = format!("set persistence mode for GPU {bus}");
                    let done = state.set_persistence(gpu, *on);
                    done.map_err(|error| ToolError::unable(&error, &what))?;
                    let word = if *on { "Enabled" } else { "Disabled" };
                    format!("{word} persistence mode for GPU {bus}.")
                }
                Setting::ComputeMode(mode) => {
                    let what = format!("set compute mode for GPU {bus}");
                    let done = state.set_compute_mode(gpu, *mode);
                    done.map_err(|error| ToolError::unable(&error, &what))?;
                    format!("Set compute mode to {} for GPU {bus}.", fields::compute_mode(*mode))
                }
            };
            drop(state);
            print(&done)?;
        }
        print("All done.")
    }
}

fn switch(text: &str) -> Result<bool, ToolError> {
    match text.to_ascii_uppercase().as_str() {
        "1" | "ENABLED" => Ok(true),
        "0" | "DISABLED" => Ok(false),
        _ => Err(unknown(text)),
    }
}

fn compute_mode(text: &str) -> Result<u32, ToolError> {
    match text.to_ascii_uppercase().as_str() {
        "0" | "DEFAULT" => Ok(0),
        "2" | "PROHIBITED" => Ok(2),
        "3" | "EXCLUSIVE_PROCESS" => Ok(3),
        _ => Err(unknown(text)),
    }
}

/// What is said of a GPU that fell off the bus, while the others answer.
fn lost(state: &State, index: u32) -> String {
    let bus = state.gpu(index).map_or_else(|_| index.to_string(), |gpu| gpu.bus_id(index));
    format!("Unable to determine the device handle for GPU{index}: {bus}: GPU is lost")
}

fn list(state: &State, gpus: &[u32]) -> Result<String, ToolError> {
    let mut lines = Vec::new();
    for &index in gpus {
        let Ok(gpu) = state.live_gpu(index) else {
            lines.push(lost(state, index));
            continue;
        };
        lines.push(format!("GPU {index}: {} (UUID: {})", gpu.board().name, gpu.uuid()));
        for (at, mig) in gpu.mig_devices().into_iter().enumerate() {
            let (name, uuid) = (gpu.mig_name(mig)?, gpu.mig_uuid(mig)?);
            lines.push(format!("  {name:<15} Device  {at}: (UUID: {uuid})"));
        }
    }
    Ok(lines.join("\n"))
}
