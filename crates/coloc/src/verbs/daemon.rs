//! `coloc daemon`: the live scheduler.

use crate::Verb;
use crate::args::administration::AdministrationArgs;
use crate::args::bounds::BoundArgs;
use crate::args::host::HostArgs;
use crate::args::live::{own_socket, own_state, path, said as said_path, warn_of_system_daemon};
use crate::args::log::LogArgs;
use crate::args::notify::NotifyArgs;
use crate::args::policy::{PolicyArgs, PresetFlag};
use crate::config::{Config, chosen_settings};
use crate::error::{CliError, UsageError};
use crate::invocation::{self, typed};
use clap::Args;
use coloc_api::view::ChosenSetting;
use coloc_daemon::retention::Retention;
use coloc_daemon::serve::{self, Listen, Options, Web};
use coloc_daemon::settings::{Reloaded, Settings, Source};
use coloc_daemon::tls::Identity;
use coloc_emu_tools::run::FleetHome;
use coloc_model::{Bytes, Fleet, Millis};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
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
    #[arg(long, value_name = "PATH", env = "COLOC_SOCKET", value_parser = path())]
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
    /// Serve the dashboard to browsers on this machine, in the clear: a port such as 7451, or 127.0.0.1 and a port; `coloc web` signs in
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = loopback_address)]
    web: Option<SocketAddr>,
    /// Let every user of this machine look at the dashboard without signing in
    #[arg(long, requires = "web")]
    web_anonymous: bool,
    /// Serve metrics for Prometheus, unencrypted and to all who can connect: a port of this machine alone, such as 9451, or
    /// an address such as 10.0.0.7:9451
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = metrics_address)]
    metrics: Option<SocketAddr>,
    /// Where to keep what must survive
    #[arg(long, value_name = "DIR", env = "COLOC_STATE", value_parser = path())]
    state: Option<PathBuf>,
    /// Seconds between two looks at the GPUs
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    period: f64,
    /// Seconds from a polite request to end to a kill
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    grace: f64,
    /// How long logs, and copies of scripts, of ended tasks are kept, such as 30d, or forever
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = kept)]
    keep_logs: Kept,
    /// The most room that logs may take, such as 20G; of more, those go first that ended first [default: no limit]
    #[arg(long, value_name = "SIZE")]
    keep_logs_size: Option<Bytes>,
    #[command(flatten)]
    notify: NotifyArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    bounds: BoundArgs,
    #[command(flatten)]
    administration: AdministrationArgs,
    #[command(flatten)]
    host: HostArgs,
}

/// For how long, or for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kept(Option<Millis>);

fn kept(text: &str) -> Result<Kept, String> {
    if text.eq_ignore_ascii_case("forever") {
        return Ok(Kept(None));
    }
    let fail = |_| format!("{text:?}: expected a time such as 30d or 12h, or forever");
    text.parse().map(|span| Kept(Some(span))).map_err(fail)
}

/// A port is one of this machine alone.
fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let fail = |_| format!("{text:?}: expected a port such as 9451, or an address and a port");
    text.replace("localhost:", "127.0.0.1:").parse().map_err(fail)
}

/// The same, and no other address.
fn loopback_address(text: &str) -> Result<SocketAddr, String> {
    let address = metrics_address(text)?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!(
            "{text:?}: the page is served in the clear, so to this machine only: 127.0.0.1 or [::1]; --listen serves it to others, \
             with TLS"
        )),
    }
}

impl Daemon {
    pub(crate) fn run(self) -> Result<(), CliError> {
        if !(self.time_scale.is_finite() && self.time_scale >= 0.001) {
            return Err(
                UsageError::value("--time-scale", "a number above 0.001", self.time_scale).into()
            );
        }
        let settings = self.settings(chosen_settings(&Config::load_for_daemon()?, &typed()))?;
        let state = said_path(self.state.as_ref()).cloned().unwrap_or_else(own_state);
        // Shims are started elsewhere, and are told where their run directories are.
        let state = std::path::absolute(&state)
            .map_err(|source| CliError::Write { file: state, source })?;
        let emulated = std::env::var_os(HOME_VARIABLE).map(PathBuf::from);
        if let (Some(fleet), None) = (&self.emulate, &emulated) {
            serve::check_state(&state)?;
            // Whether a daemon has these GPUs is settled before the user is advised to remove them.
            serve::check_free(&state)?;
            return Err(self.start_again(fleet, &state.join("emulated")));
        }
        let _log = self.log.start();
        warn_of_system_daemon(self.emulate.is_some());
        let options = Options {
            socket: said_path(self.socket.as_ref()).cloned().unwrap_or_else(own_socket),
            listen: self.door(),
            web: self.web.map(|address| Web { address, anonymous: self.web_anonymous }),
            metrics: self.metrics,
            settings,
            time_scale: self.time_scale,
            period: Millis::from_secs_f64(self.period),
            program: std::env::current_exe().map_err(|source| CliError::Write {
                file: PathBuf::from("/proc/self/exe"),
                source,
            })?,
            prefixes: prefixes(emulated.as_deref()),
            variables: variables(emulated.as_deref()),
            state,
            source: Source::new(move || self.again().map_err(|error| error.to_string())),
        };
        Ok(serve::run(options)?)
    }

    /// What may change while the daemon runs.
    fn settings(&self, chosen: Vec<ChosenSetting>) -> Result<Settings, CliError> {
        self.policy.service.check()?;
        self.policy.accounts.check()?;
        let spans = [("--grace", self.grace), ("--period", self.period)];
        if let Some((flag, given)) = spans.iter().find(|(_, s)| !(0.0..=86_400.0).contains(s)) {
            return Err(UsageError::value(*flag, "seconds, a day at most", given).into());
        }
        // Live, our own policy is what people expect.
        let preset = self.policy.preset.or(Some(PresetFlag::Coloc));
        let policy = PolicyArgs { preset, ..self.policy.clone() };
        let quotas = policy.accounts.quotas();
        quotas.look_up().map_err(UsageError::from)?;
        let fleet = self.emulate.as_ref();
        let administration = self.administration.administration(&policy.policy(), fleet)?;
        Ok(Settings {
            policy: policy.policy(),
            quotas,
            host: self.host.capacity(self.emulate.as_ref()),
            history: policy.service.history()?,
            grace: Millis::from_secs_f64(self.grace),
            retention: Retention { age: self.keep_logs.0, size: self.keep_logs_size },
            bounds: self.bounds.bounds()?,
            notify: self.notify.settings()?,
            administration,
            chosen,
        })
    }

    /// Whether a daemon with these flags could be had here.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        self.settings(Vec::new()).map(|_| ())
    }

    /// Reads the configuration again, with what was typed at the start.
    fn again(&self) -> Result<Reloaded, CliError> {
        let words: Vec<OsString> = std::env::args_os().collect();
        let Some(Verb::Daemon(new)) = invocation::read_again(words)?.verb else {
            return Err(UsageError::Parser("this is no daemon".to_owned()).into());
        };
        let settings = new.settings(chosen_settings(&Config::load_for_daemon()?, &typed()))?;
        Ok(Reloaded { settings, at_next_start: self.fixed_differences(&new) })
    }

    /// What cannot change while the daemon runs, and would.
    fn fixed_differences(&self, new: &Daemon) -> Vec<String> {
        let fixed = |daemon: &Daemon| {
            let Daemon {
                emulate,
                time_scale,
                socket,
                state,
                listen,
                tls_cert,
                tls_key,
                web,
                web_anonymous,
                metrics,
                period,
                log,
                ..
            } = daemon;
            [
                ("emulate", format!("{emulate:?}")),
                ("time-scale", format!("{time_scale:?}")),
                ("socket", format!("{socket:?}")),
                ("state", format!("{state:?}")),
                ("listen", format!("{listen:?}")),
                ("tls-cert", format!("{tls_cert:?}")),
                ("tls-key", format!("{tls_key:?}")),
                ("web", format!("{web:?}")),
                ("web-anonymous", format!("{web_anonymous:?}")),
                ("metrics", format!("{metrics:?}")),
                ("period", format!("{period:?}")),
                ("log-format", format!("{:?}", log.log_format)),
                ("log-level", format!("{:?}", log.log_level)),
            ]
        };
        let pairs = fixed(self).into_iter().zip(fixed(new));
        pairs.filter(|(old, new)| old != new).map(|((key, _), _)| key.to_owned()).collect()
    }

    fn door(&self) -> Option<Listen> {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let identity = files.map(|(certificate, key)| Identity { certificate, key });
        self.listen.map(|address| Listen { address, identity })
    }

    /// Makes the fleet and becomes a program that finds its libraries: they are looked for at start only. A fleet that
    /// is there already has tasks on it, and stays.
    fn start_again(&self, fleet: &Fleet, home: &Path) -> CliError {
        let options = coloc_emu::Options::for_daemon(self.time_scale);
        let models: Vec<String> = fleet.gpus().iter().map(|gpu| gpu.model.to_string()).collect();
        let description = format!("{} x{}", models.join(" "), self.time_scale);
        let note = home.join("fleet.txt");
        let state = home.parent().unwrap_or(home);
        if let Err(source) = std::fs::create_dir_all(state) {
            return CliError::Write { file: state.to_owned(), source };
        }
        if coloc_emu::Emulator::open(home).is_ok() {
            let there = std::fs::read_to_string(&note).unwrap_or_default();
            if there != description {
                let problem = format!(
                    "it has other emulated GPUs ({there}); use another --state, or remove that directory"
                );
                return UsageError::file(home, problem).into();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::{ArgAction, Parser as _};

    /// A value for a flag that takes any.
    fn sample(flag: &str) -> &'static str {
        match flag {
            "pack" => "0.3",
            "margin" | "min-free" | "unknown-instance" => "2G",
            "settle" | "max-tasks" | "starvation-limit" | "retries" => "3",
            "sm-limit" | "alpha" | "promote" | "quantum" => "0.5",
            "thresholds" => "3250,7200",
            "history" => "/dev/stdin",
            "half-life" => "1d",
            "weight" => "root=2",
            "quota" => "@root=320G",
            other => panic!("--{other} is new: does the daemon do what it says?"),
        }
    }

    #[test]
    fn logs_are_kept_for_a_month_unless_somebody_says_otherwise() {
        let settings = |words: &[&str]| {
            let cli = Cli::try_parse_from([&["coloc", "daemon"], words].concat()).ok()?;
            let Some(Verb::Daemon(daemon)) = cli.verb else { panic!("a daemon") };
            daemon.settings(Vec::new()).ok().map(|settings| settings.retention)
        };
        assert_eq!(settings(&[]), Some(Retention::default()));
        let some = settings(&["--keep-logs", "forever", "--keep-logs-size", "20G"]);
        assert_eq!(some, Some(Retention { age: None, size: Some(Bytes::from_mib(20 << 10)) }));
        for wrong in ["", "never", "-1d", "30x", "1e99d"] {
            assert_eq!(settings(&["--keep-logs", wrong]), None, "{wrong}");
        }
    }

    #[test]
    fn help_tells_what_the_preset_does() {
        let policy = PolicyArgs { preset: Some(PresetFlag::Coloc), ..PolicyArgs::default() };
        let policy = serde_json::to_value(policy.policy()).expect("plain values");
        let program = <PolicyArgs as Args>::augment_args(clap::Command::new("policy"));
        let told = |flag: &str| {
            let flag = program.get_arguments().find(|known| known.get_long() == Some(flag));
            let help = flag.and_then(|flag| flag.get_help()).expect("a flag with help").to_string();
            let said = help.split_once("of preset coloc: ").expect("what the preset does").1;
            said.trim_end_matches(']').to_owned()
        };
        for flag in ["queue", "place", "share"] {
            assert_eq!(policy[flag], told(flag), "{flag}");
        }
        assert_eq!(policy["gate"]["expected"]["limit"].to_string(), told("sm-limit"));
        let times = told("starvation-limit");
        let times = times.split_whitespace().find_map(|word| word.parse::<f64>().ok());
        assert_eq!(policy["overtaking"].as_f64(), times);
    }

    #[test]
    fn whatever_can_be_simulated_can_be_chosen_live_by_the_same_name() {
        let policy = <PolicyArgs as Args>::augment_args(clap::Command::new("policy"));
        let samples = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(samples.path(), "duration\n10\n20\n").expect("written");
        let mut tried = 0;
        for flag in policy.get_arguments() {
            let Some(name) = flag.get_long() else { continue };
            let named: Vec<String> =
                flag.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect();
            let is_switch = matches!(flag.get_action(), ArgAction::SetTrue);
            let words: Vec<String> = match (is_switch, named.is_empty()) {
                (true, _) => vec![format!("--{name}")],
                (false, false) => named.iter().map(|value| format!("--{name}={value}")).collect(),
                (false, true) if name == "history" => {
                    vec![format!("--history={}", samples.path().display())]
                }
                (false, true) => vec![format!("--{name}={}", sample(name))],
            };
            for word in &words {
                let cli = Cli::try_parse_from(["coloc", "daemon", word]);
                let Ok(Cli { verb: Some(Verb::Daemon(daemon)) }) = cli else { panic!("{word}") };
                let settings =
                    daemon.settings(Vec::new()).unwrap_or_else(|e| panic!("{word}: {e}"));
                settings.quotas.look_up().expect("root is known");
                tried += 1;
            }
        }
        assert!(tried > 45, "{tried}");
    }
}
