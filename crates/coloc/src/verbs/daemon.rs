//! `coloc daemon`: the live scheduler.

use crate::args::live::{own_socket, own_state};
use crate::args::policy::{PolicyArgs, PresetFlag};
use crate::error::CliError;
use clap::Args;
use coloc_daemon::serve::{self, Listen, Options};
use coloc_daemon::tls::Identity;
use coloc_emu_tools::run::FleetHome;
use coloc_model::{Fleet, Millis};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says to the second start of this program where the emulated fleet is.
const HOME_VARIABLE: &str = "COLOC_DAEMON_EMULATES";

/// Run tasks on the GPUs of this machine
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Daemon {
    /// Use emulated GPUs, such as 4xA100-40GB
    #[arg(long, value_name = "FLEET")]
    emulate: Option<Fleet>,
    /// How many seconds pass for tasks in one second; only emulated GPUs can be hurried
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "emulate")]
    time_scale: f64,
    /// Where to listen
    #[arg(long, value_name = "PATH", env = "COLOC_SOCKET")]
    socket: Option<PathBuf>,
    /// Also listen on the network, with TLS, such as 0.0.0.0:7450
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The certificate to show there, in PEM [default: one that the daemon makes]
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"])]
    tls_cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Where to keep what must survive
    #[arg(long, value_name = "DIR", env = "COLOC_STATE")]
    state: Option<PathBuf>,
    /// Seconds between two looks at the GPUs
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    period: f64,
    /// Seconds from a polite request to end to a kill
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    grace: f64,
    #[command(flatten)]
    policy: PolicyArgs,
}

impl Daemon {
    pub(crate) fn run(mut self) -> Result<(), CliError> {
        if !(self.time_scale.is_finite() && self.time_scale >= 0.001) {
            return Err(CliError::Usage("--time-scale: expected a number above 0.001".into()));
        }
        self.refuse_what_is_simulated_only()?;
        let state = self.state.clone().unwrap_or_else(own_state);
        let emulated = std::env::var_os(HOME_VARIABLE).map(PathBuf::from);
        if let (Some(fleet), None) = (&self.emulate, &emulated) {
            return Err(self.start_again(fleet, &state.join("emulated")));
        }
        // Live, our own policy is what people expect.
        self.policy.preset.get_or_insert(PresetFlag::Coloc);
        let options = Options {
            socket: self.socket.clone().unwrap_or_else(own_socket),
            listen: self.door(),
            policy: self.policy.policy(),
            time_scale: self.time_scale,
            period: Millis::from_secs_f64(self.period),
            grace: Millis::from_secs_f64(self.grace),
            program: std::env::current_exe().map_err(|source| CliError::Write {
                file: PathBuf::from("/proc/self/exe"),
                source,
            })?,
            prefixes: prefixes(emulated.as_deref()),
            variables: variables(emulated.as_deref()),
            state,
        };
        eprintln!("coloc daemon: listening at {}", options.socket.display());
        Ok(serve::run(options)?)
    }

    fn door(&self) -> Option<Listen> {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let identity = files.map(|(certificate, key)| Identity { certificate, key });
        self.listen.map(|address| Listen { address, identity })
    }

    /// A flag that would be taken and then ignored is worse than none.
    fn refuse_what_is_simulated_only(&self) -> Result<(), CliError> {
        let (policy, service) = (&self.policy, &self.policy.service);
        let given = [
            ("--weight", !policy.accounts.weight.is_empty()),
            ("--quota", !policy.accounts.quota.is_empty()),
            ("--history", service.history.is_some()),
            ("--preempt-cost", service.preempt_cost.is_some()),
            ("--preempt-cost-per-gib", service.preempt_cost_per_gib.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(CliError::Usage(format!(
                "{flag} works in `coloc simulate` only; the daemon cannot do it yet"
            ))),
            None => Ok(()),
        }
    }

    /// Makes the fleet and becomes a program that finds its libraries: they are looked for at start only. A fleet that
    /// is there already has tasks on it, and stays.
    fn start_again(&self, fleet: &Fleet, home: &Path) -> CliError {
        let options = coloc_emu::Options { time_scale: self.time_scale, frozen: false };
        let models: Vec<String> = fleet.gpus().iter().map(|gpu| gpu.model.to_string()).collect();
        let description = format!("{} x{}", models.join(" "), self.time_scale);
        let note = home.join("fleet.txt");
        if coloc_emu::Emulator::open(home).is_ok() {
            let there = std::fs::read_to_string(&note).unwrap_or_default();
            if there != description {
                return CliError::Usage(format!(
                    "{} has other emulated GPUs ({there}); use another --state, or remove that directory",
                    home.display()
                ));
            }
        } else if let Err(error) = FleetHome::create(Some(home), fleet, options) {
            return error.into();
        } else if let Err(source) = std::fs::write(&note, description) {
            return CliError::Write { file: note, source };
        }
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("coloc"));
        let error = Command::new(&program)
            .args(std::env::args_os().skip(1))
            .envs(coloc_emu::install::environment(&home))
            .env(HOME_VARIABLE, &home)
            .exec();
        CliError::Write { file: program, source: error }
    }
}

fn prefixes(home: Option<&Path>) -> Vec<(&'static str, OsString)> {
    let Some(home) = home else { return Vec::new() };
    vec![
        ("LD_LIBRARY_PATH", home.join("lib").into_os_string()),
        ("PATH", home.join("bin").into_os_string()),
    ]
}

fn variables(home: Option<&Path>) -> Vec<(String, OsString)> {
    let directory = home.map(|home| home.as_os_str().to_owned());
    directory.map(|home| (coloc_emu::DIR_VARIABLE.to_owned(), home)).into_iter().collect()
}
