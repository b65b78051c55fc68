//! Every option of sbatch, with what becomes of it here. The parser takes from this table what is known and has no effect
//! and what is refused; `docs/from-slurm.md` shows all of it.

use clap::builder::{ArgAction, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

/// What becomes of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// It does this.
    Works(&'static str),
    /// Nothing, for this reason; the user is told.
    Nothing(&'static str),
    /// It would change the result, and cannot be had.
    Refused(&'static str),
}

/// Whether a value follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    None,
    Needed,
    /// Only after `=`.
    Optional,
}

/// An option of sbatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlurmOption {
    pub(crate) long: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) value: Value,
    pub(crate) effect: Effect,
}

const fn option(long: &'static str, short: char, value: Value, effect: Effect) -> SlurmOption {
    let short = if short == ' ' { None } else { Some(short) };
    SlurmOption { long, short, value, effect }
}

use Effect::{Nothing, Refused, Works};
use Value::{Needed, Optional};

const ONE_NODE: &str = "there is one server";
const ONE_USER_SPACE: &str = "CPUs are counted, not chosen by socket, core or thread";
const ONE_CLUSTER: &str = "there is one cluster";

/// All options of sbatch, in the order of its manual.
pub(crate) const SBATCH: &[SlurmOption] = &[
    option("account", 'A', Needed, Works("accepted; shares and quotas go by user and group")),
    option("acctg-freq", ' ', Needed, Nothing("the monitor has its own period")),
    option("array", 'a', Needed, Works("an array, with `%N` at once")),
    option(
        "batch",
        ' ',
        Needed,
        Works("samples per iteration, for the estimate; Slurm's has no meaning here"),
    ),
    option("bb", ' ', Needed, Refused("there is no burst buffer: copy the data in the script")),
    option("bbf", ' ', Needed, Refused("there is no burst buffer: copy the data in the script")),
    option("begin", 'b', Needed, Works("not before")),
    option("chdir", 'D', Needed, Works("where it runs")),
    option("cluster-constraint", ' ', Needed, Nothing(ONE_CLUSTER)),
    option("clusters", 'M', Needed, Nothing(ONE_CLUSTER)),
    option("comment", ' ', Needed, Works("accepted; the comment is not kept")),
    option("consolidate-segments", ' ', Value::None, Nothing(ONE_NODE)),
    option(
        "constraint",
        'C',
        Needed,
        Works("kinds of GPU, such as `a100\\|h100`; other features have no effect"),
    ),
    option(
        "container",
        ' ',
        Needed,
        Refused("tasks run without one: start it in the script, such as with apptainer"),
    ),
    option(
        "container-id",
        ' ',
        Needed,
        Refused("tasks run without one: start it in the script, such as with apptainer"),
    ),
    option("contiguous", ' ', Value::None, Nothing(ONE_NODE)),
    option("core-spec", 'S', Needed, Nothing(ONE_USER_SPACE)),
    option("cores-per-socket", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option("cpu-freq", ' ', Needed, Nothing("frequencies are the machine's")),
    option("cpus-per-gpu", ' ', Needed, Works("CPUs for each of its GPUs")),
    option(
        "cpus-per-task",
        'c',
        Needed,
        Works("CPUs for each copy, counted and, where a cgroup can, set; `OMP_NUM_THREADS`"),
    ),
    option(
        "deadline",
        ' ',
        Needed,
        Nothing("a task that cannot end in time is not removed: give `--time`"),
    ),
    option("delay-boot", ' ', Needed, Nothing(ONE_NODE)),
    option("dependency", 'd', Needed, Works("tasks that must start or end first")),
    option("distribution", 'm', Needed, Nothing(ONE_NODE)),
    option("error", 'e', Needed, Works("where errors go")),
    option("exclude", 'x', Needed, Nothing(ONE_NODE)),
    option(
        "exclusive",
        ' ',
        Optional,
        Works("no other task on its GPUs; with `=user` and the like too"),
    ),
    option("export", ' ', Needed, Works("variables that it gets")),
    option("export-file", ' ', Needed, Refused("name the variables with --export")),
    option("extra", ' ', Needed, Nothing("no plugin reads it")),
    option("extra-node-info", 'B', Needed, Nothing(ONE_USER_SPACE)),
    option("get-user-env", ' ', Optional, Works("the environment of a login shell")),
    option(
        "gid",
        ' ',
        Needed,
        Refused("a task runs as the user who submits it, with that user's groups"),
    ),
    option(
        "gpu-bind",
        ' ',
        Needed,
        Nothing("a whole task sees all of its GPUs; give it to `srun`"),
    ),
    option("gpu-freq", ' ', Needed, Nothing("frequencies are the machine's")),
    option("gpus", 'G', Needed, Works("GPUs, such as `2` or `a100:2`; without any, 1")),
    option("gpus-per-node", ' ', Needed, Works("the same")),
    option("gpus-per-socket", ' ', Needed, Refused("sockets are not counted: give --gpus")),
    option("gpus-per-task", ' ', Needed, Works("GPUs for each copy; `srun` gives each its own")),
    option(
        "gres",
        ' ',
        Needed,
        Works("GPUs, such as `gpu:2` or `gpu:a100:2`; others are left out"),
    ),
    option("gres-flags", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option("help", 'h', Value::None, Works("tells the flags")),
    option("hint", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option("hold", 'H', Value::None, Works("waits until it is released")),
    option("ignore-pbs", ' ', Value::None, Nothing("`#PBS` lines are never read")),
    option("input", 'i', Needed, Refused("redirect it in the script, such as `exec < FILE`")),
    option("job-name", 'J', Needed, Works("its name")),
    option(
        "kill-on-invalid-dep",
        ' ',
        Needed,
        Nothing("a task whose dependency can never be met is always cancelled"),
    ),
    option("licenses", 'L', Needed, Nothing("licences are not counted")),
    option("mail-type", ' ', Needed, Works("accepted; no mail is sent, and that is told")),
    option("mail-user", ' ', Needed, Works("accepted; no mail is sent")),
    option("mcs-label", ' ', Needed, Nothing("there are no security labels")),
    option(
        "mem",
        ' ',
        Needed,
        Works("host memory, counted and, where a cgroup can, held to; 0 for no limit"),
    ),
    option("mem-bind", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option("mem-per-cpu", ' ', Needed, Works("host memory for each of its CPUs")),
    option(
        "mem-per-gpu",
        ' ',
        Needed,
        Works("host memory for each of its GPUs; GPU memory is `--gpu-mem`"),
    ),
    option("mincpus", ' ', Needed, Nothing(ONE_NODE)),
    option("network", ' ', Needed, Nothing("networks are the machine's")),
    option("nice", ' ', Optional, Works("lets others go first; 100 without a number")),
    option("no-kill", 'k', Optional, Nothing(ONE_NODE)),
    option(
        "no-requeue",
        ' ',
        Value::None,
        Works(
            "accepted; a task that is preempted or loses a GPU is started again, and that is told",
        ),
    ),
    option("nodefile", 'F', Needed, Nothing(ONE_NODE)),
    option("nodelist", 'w', Needed, Nothing(ONE_NODE)),
    option("nodes", 'N', Needed, Works("1, or a range that begins with 1; more are refused")),
    option("ntasks", 'n', Needed, Works("copies that `srun` starts")),
    option("ntasks-per-core", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option("ntasks-per-gpu", ' ', Needed, Works("copies that `srun` starts, for each GPU")),
    option("ntasks-per-node", ' ', Needed, Works("copies that `srun` starts")),
    option("ntasks-per-socket", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option(
        "oom-kill-step",
        ' ',
        Optional,
        Nothing("a task that runs out of host memory ends as a whole"),
    ),
    option("open-mode", ' ', Needed, Works("append or truncate; append unless said")),
    option("output", 'o', Needed, Works("where output goes; `slurm-%j.out` for sbatch")),
    option(
        "overcommit",
        'O',
        Value::None,
        Nothing("copies of `srun` share the task's CPUs in any case"),
    ),
    option(
        "oversubscribe",
        's',
        Value::None,
        Nothing("whether tasks share GPUs is the daemon's policy; `--exclusive` forbids it"),
    ),
    option("parsable", ' ', Value::None, Works("prints the id alone")),
    option("partition", 'p', Needed, Works("names a pool, where the daemon has pools")),
    option(
        "prefer",
        ' ',
        Needed,
        Nothing("features other than kinds of GPU are not known: `--constraint`"),
    ),
    option("priority", ' ', Needed, Works("higher goes first; above 0 is for administrators")),
    option("profile", ' ', Needed, Nothing("the monitor records what it sees: `coloc show`")),
    option("propagate", ' ', Optional, Nothing("the submitter's limits and umask are always kept")),
    option("qos", 'q', Needed, Works("accepted")),
    option("quiet", 'Q', Value::None, Works("nothing is told but errors")),
    option("reboot", ' ', Value::None, Nothing("the machine is not restarted for a task")),
    option("requeue", ' ', Value::None, Works("what happens in any case")),
    option("reservation", ' ', Needed, Nothing("there are no reservations by name")),
    option("resv-ports", ' ', Optional, Nothing("`MASTER_PORT` differs for every task")),
    option("segment", ' ', Needed, Nothing(ONE_NODE)),
    option(
        "signal",
        ' ',
        Needed,
        Works(
            "a signal before the time limit, to the shell if it has a trap, else to what it runs",
        ),
    ),
    option("sockets-per-node", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option("spread-job", ' ', Value::None, Nothing(ONE_NODE)),
    option("spread-segments", ' ', Value::None, Nothing(ONE_NODE)),
    option("stepmgr", ' ', Value::None, Nothing(ONE_NODE)),
    option("switches", ' ', Needed, Nothing(ONE_NODE)),
    option(
        "test-only",
        ' ',
        Value::None,
        Refused("submit with --hold and ask `coloc why`: nothing runs until it is released"),
    ),
    option("thread-spec", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option("threads-per-core", ' ', Needed, Nothing(ONE_USER_SPACE)),
    option("time", 't', Needed, Works("its time limit")),
    option("time-min", ' ', Needed, Nothing("a time limit is not shortened")),
    option("tmp", ' ', Needed, Nothing("disk space is not counted")),
    option(
        "tres-bind",
        ' ',
        Needed,
        Nothing("a whole task sees all of its GPUs; give `--gpu-bind` to `srun`"),
    ),
    option("tres-per-task", ' ', Needed, Refused("give --cpus-per-task and --gpus-per-task")),
    option("uid", ' ', Needed, Refused("a task runs as the user who submits it")),
    option("usage", ' ', Value::None, Works("tells the flags")),
    option("use-min-nodes", ' ', Value::None, Nothing(ONE_NODE)),
    option("verbose", 'v', Value::None, Nothing("everything is told in any case")),
    option("version", 'V', Value::None, Works("coloc's version")),
    option("wait", 'W', Value::None, Works("stays until it has ended")),
    option("wait-all-nodes", ' ', Needed, Nothing(ONE_NODE)),
    option("wckey", ' ', Needed, Nothing("no accounting by such keys")),
    option("wrap", ' ', Needed, Works("a command for the shell")),
];

/// Options that were given although they do nothing here, or cannot be had.
#[derive(Clone, Default, Debug)]
pub(crate) struct WithoutEffect {
    given: Vec<&'static SlurmOption>,
}

impl WithoutEffect {
    /// Those that do nothing.
    pub(crate) fn idle(&self) -> impl Iterator<Item = String> + '_ {
        let idle = self.given.iter().filter(|option| matches!(option.effect, Nothing(_)));
        idle.map(|option| format!("--{}", option.long))
    }

    /// The first that cannot be had, with the reason.
    pub(crate) fn refused(&self) -> Option<(String, &'static str)> {
        self.given.iter().find_map(|option| match option.effect {
            Refused(why) => Some((format!("--{}", option.long), why)),
            Works(_) | Nothing(_) => None,
        })
    }
}

fn parsed_here() -> impl Iterator<Item = &'static SlurmOption> {
    SBATCH.iter().filter(|option| !matches!(option.effect, Works(_)))
}

fn arg(option: &'static SlurmOption) -> Arg {
    let arg = Arg::new(option.long).long(option.long).hide(true);
    let arg = option.short.into_iter().fold(arg, Arg::short);
    let any = || ValueParser::os_string();
    match option.value {
        Value::None => arg.action(ArgAction::Count),
        Needed => arg.action(ArgAction::Append).num_args(1).value_parser(any()),
        Optional => {
            arg.action(ArgAction::Append).num_args(0..=1).require_equals(true).value_parser(any())
        }
    }
}

impl Args for WithoutEffect {
    fn augment_args(command: Command) -> Command {
        command.args(parsed_here().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WithoutEffect {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |option: &&SlurmOption| {
            let source = matches.value_source(option.long);
            source.is_some_and(|source| source != clap::parser::ValueSource::DefaultValue)
        };
        Ok(WithoutEffect { given: parsed_here().filter(typed).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The table for `docs/from-slurm.md`.
#[cfg(test)]
pub(crate) fn table() -> String {
    let mut text = "| option | here |\n|---|---|\n".to_owned();
    for SlurmOption { long, short, effect, .. } in SBATCH {
        let short = short.map_or(String::new(), |short| format!("`-{short}`, "));
        let told = match effect {
            Works(what) => (*what).to_owned(),
            Nothing(why) => format!("*no effect*: {why}"),
            Refused(why) => format!("**refused**: {why}"),
        };
        text.push_str(&format!("| {short}`--{long}` | {told} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::submit::Submit;

    /// The flags of `coloc submit`, by their long names.
    fn known() -> Vec<(String, Option<char>)> {
        let submit = Submit::augment_args(Command::new("submit"));
        let mut known = Vec::new();
        for arg in submit.get_arguments() {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            let names = arg.get_long().into_iter().chain(aliases);
            known.extend(names.map(|name| (name.to_owned(), arg.get_short())));
        }
        known
    }

    #[test]
    fn every_option_of_sbatch_is_taken_by_the_parser_with_its_letter() {
        // Translated before the parser, or the parser's own.
        let elsewhere = ["help", "usage", "version"];
        let known = known();
        for option in SBATCH.iter().filter(|option| !elsewhere.contains(&option.long)) {
            let found = known.iter().find(|(name, _)| name == option.long);
            let (_, short) = found.unwrap_or_else(|| panic!("--{} is not parsed", option.long));
            assert!(option.short.is_none() || *short == option.short, "--{}", option.long);
        }
    }

    #[test]
    fn the_page_from_slurm_has_this_table() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/from-slurm.md");
        let page = std::fs::read_to_string(file).expect("the page is there");
        let table = table();
        assert!(page.contains(&table), "{file} must have this table:\n{table}");
    }

    #[test]
    fn no_option_is_named_twice_and_all_are_in_order() {
        assert!(SBATCH.windows(2).all(|two| two[0].long < two[1].long));
        let mut letters: Vec<char> = SBATCH.iter().filter_map(|option| option.short).collect();
        letters.sort_unstable();
        assert!(letters.windows(2).all(|two| two[0] != two[1]));
    }
}
