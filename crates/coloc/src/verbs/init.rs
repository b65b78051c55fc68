//! `coloc init`: a configuration to edit, a unit for systemd, and Slurm's names.

use crate::error::{CliError, UsageError};
use crate::output::{files, print_text};
use crate::{Cli, config, slurm};
use clap::{Args, CommandFactory as _};
use std::path::{Path, PathBuf};

/// Write a configuration file to edit and a unit for systemd
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// For the whole machine, which is what root gets; otherwise for this user alone
    #[arg(long)]
    system: bool,
    /// Write below this directory instead of /, to build a package or to look
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Write over files that are there
    #[arg(long)]
    force: bool,
    /// Print what would be written
    #[arg(long)]
    dry_run: bool,
    /// Only put links by the names sbatch, squeue and scancel in this directory
    #[arg(long, value_name = "DIR")]
    slurm_aliases: Option<PathBuf>,
}

impl Init {
    pub(crate) fn run(self) -> Result<(), CliError> {
        if let Some(directory) = &self.slurm_aliases {
            return self.link(directory);
        }
        let system = self.system || crate::args::live::is_root();
        let program = program()?;
        let unit = unit(system, &program);
        let (configuration, service) = places(system)?;
        let planned = [(configuration, configuration_text()), (service, unit)];
        let planned = planned.map(|(file, text)| (self.below_root(&file), text));
        if self.dry_run {
            let parts = planned.map(|(file, text)| format!("# {}\n{text}", file.display()));
            return print_text(parts.join("\n").trim_end());
        }
        for (file, text) in &planned {
            if file.exists() && !self.force {
                print_text(&format!("{} is there, and is left alone", file.display()))?;
                continue;
            }
            let parent = file.parent().unwrap_or(Path::new("/"));
            let fail = |source| CliError::Write { file: parent.to_owned(), source };
            std::fs::create_dir_all(parent).map_err(fail)?;
            files::write(file, |output| output.write_all(text.as_bytes()))?;
            print_text(&format!("Wrote {}", file.display()))?;
        }
        let user = if system { "" } else { "--user " };
        print_text(&format!(
            "Next: systemctl {user}daemon-reload && systemctl {user}enable --now coloc"
        ))
    }

    fn below_root(&self, file: &Path) -> PathBuf {
        match &self.root {
            Some(root) => root.join(file.strip_prefix("/").unwrap_or(file)),
            None => file.to_owned(),
        }
    }

    /// Links, never over what is not ours.
    fn link(&self, directory: &Path) -> Result<(), CliError> {
        let program = program()?;
        let fail = |file: &Path| {
            let file = file.to_owned();
            move |source| CliError::Write { file, source }
        };
        for name in slurm::NAMES {
            let link = directory.join(name);
            if self.dry_run {
                print_text(&format!("{} -> {}", link.display(), program.display()))?;
                continue;
            }
            std::fs::create_dir_all(directory).map_err(fail(directory))?;
            if std::fs::symlink_metadata(&link).is_ok() {
                if std::fs::read_link(&link).ok().as_ref() != Some(&program) && !self.force {
                    let what = format!("{} is there and is not coloc's", link.display());
                    return Err(CliError::Refused(format!("{what}; --force takes its place")));
                }
                std::fs::remove_file(&link).map_err(fail(&link))?;
            }
            std::os::unix::fs::symlink(&program, &link).map_err(fail(&link))?;
            print_text(&format!("{} -> {}", link.display(), program.display()))?;
        }
        Ok(())
    }
}

fn program() -> Result<PathBuf, CliError> {
    std::env::current_exe()
        .map_err(|source| CliError::Write { file: PathBuf::from("/proc/self/exe"), source })
}

fn places(system: bool) -> Result<(PathBuf, PathBuf), CliError> {
    if system {
        let unit = PathBuf::from("/etc/systemd/system/coloc.service");
        return Ok((PathBuf::from(config::SYSTEM_FILE), unit));
    }
    let no_home =
        || CliError::from(UsageError::flag("HOME", "neither it nor XDG_CONFIG_HOME is set"));
    let file = config::user_file().ok_or_else(no_home)?;
    let base = file.parent().and_then(Path::parent).ok_or_else(no_home)?;
    let unit = base.join("systemd/user/coloc.service");
    Ok((file, unit))
}

/// Every key of the daemon, with its help, switched off.
fn configuration_text() -> String {
    let mut text = String::from(
        "# coloc's configuration. Every key is a flag of the verb that names its section.\n\
         # A flag wins over the environment, that over the user's file, and that over the system's.\n\
         # `coloc config check` says whether this makes sense, `coloc config show --origin` what counts.\n",
    );
    let mut program = Cli::command();
    program.build();
    for (section, verb) in [
        ("daemon", "daemon"),
        ("api", "daemon"),
        ("notify", "daemon"),
        ("submit", "submit"),
        ("client", "queue"),
    ] {
        text.push_str(&format!("\n[{section}]\n"));
        let flags = program.find_subcommand(verb).into_iter().flat_map(|c| c.get_arguments());
        for flag in flags.filter(|flag| !flag.is_hide_set()) {
            let Some(key) = flag.get_long().filter(|key| config::is_key(section, key)) else {
                continue;
            };
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("\n# {help}\n"));
            let names: Vec<String> =
                flag.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect();
            let is_switch = matches!(flag.get_action(), clap::ArgAction::SetTrue);
            if !names.is_empty() && !is_switch {
                text.push_str(&format!("# One of {}\n", names.join(", ")));
            }
            let default = flag.get_default_values().first().map(|value| value.to_string_lossy());
            let value = match default.or_else(|| told_default(&help).map(Into::into)) {
                _ if is_switch => "true".to_owned(),
                Some(value) => format!("{value:?}"),
                None => "\"\"".to_owned(),
            };
            text.push_str(&format!("#{key} = {value}\n"));
        }
    }
    text
}

/// What a flag's help says that the daemon does without it, where that is a word.
fn told_default(help: &str) -> Option<&str> {
    let said = help.rsplit_once("[default: ")?.1.strip_suffix(']')?;
    let ours = ["of preset coloc: ", "of the daemon: "];
    let ours = ours.iter().find_map(|mark| Some(said.split_once(mark)?.1));
    ours.or(Some(said)).filter(|word| !word.contains(' '))
}

/// Tasks are children of the daemon, so the walls around it stand around them too: none that keeps a training from its
/// files.
fn unit(system: bool, program: &Path) -> String {
    let program = program.display();
    let own = match system {
        true => "\
# Its socket and state.
RuntimeDirectory=coloc
StateDirectory=coloc
# What it takes to run tasks as their users, to see their processes and to set GPUs up.
CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE CAP_KILL CAP_SYS_PTRACE CAP_SYS_RESOURCE CAP_SYS_NICE CAP_SYS_ADMIN
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
",
        false => "",
    };
    let target = if system { "multi-user.target" } else { "default.target" };
    format!(
        "\
[Unit]
Description=coloc, a scheduler for GPUs
After=network.target nvidia-persistenced.service

[Service]
Type=notify
ExecStart={program} daemon
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
# A restart leaves tasks alone: they are found again.
KillMode=process
# A control group for each task; the daemon in one of its own, as limits require.
Delegate=yes
DelegateSubgroup=daemon
TasksMax=infinity
LimitNOFILE=65536
# Tasks are its children: no wall here that would keep a training from its files.
{own}
[Install]
WantedBy={target}
"
    )
}
