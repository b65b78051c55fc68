//! Slurm's names for what coloc does: a link to this binary by the name of one of Slurm's commands is that command.

pub(crate) mod options;
mod sbatch;
mod scontrol;
pub(crate) mod words;

use std::ffi::OsString;
use std::path::Path;
use words::Words;

pub(crate) use scontrol::known_keys;

/// The names that links may have.
pub(crate) use coloc_api::slurm::COMMANDS as NAMES;

/// The verb that does what has no verb of its own.
const VERB: &str = "slurm";

/// The words that the same request has here; `None` for every other name.
pub(crate) fn translate(name: &str, words: &[OsString]) -> Option<Vec<OsString>> {
    let is_inside = std::env::var_os("COLOC_TASK_ID").is_some();
    translated(name, words, is_inside)
}

fn translated(name: &str, words: &[OsString], is_inside: bool) -> Option<Vec<OsString>> {
    let head = |verb: &[&str]| ["coloc"].iter().chain(verb).map(OsString::from).collect::<Vec<_>>();
    let renamed = |verb: &[&str], short: &[(&str, &str)]| {
        let ours = |word: &OsString| {
            let known = short.iter().find(|(theirs, _)| word == *theirs);
            known.map_or_else(|| word.clone(), |(_, ours)| OsString::from(ours))
        };
        [head(verb), words.iter().map(ours).collect()].concat()
    };
    Some(match name {
        // What follows a script's name is the script's.
        "sbatch" => [head(&["submit", "--slurm"]), with_values(words)].concat(),
        // Here -h is help. All partitions, and an array task by task, are what there is.
        "squeue" => renamed(
            &["queue", "--slurm"],
            &[
                ("-h", "--noheader"),
                ("-a", "--slurm"),
                ("--all", "--slurm"),
                ("-r", "--slurm"),
                ("--array", "--slurm"),
            ],
        ),
        "scancel" => renamed(&["cancel", "--slurm"], &[("-n", "--name"), ("-t", "--state")]),
        "srun" if !is_inside => of_srun(words).unwrap_or_else(|| as_is(name, words)),
        "salloc" => of_salloc(words).unwrap_or_else(|| as_is(name, words)),
        "scontrol" => scontrol::translate(words).unwrap_or_else(|| as_is(name, words)),
        "srun" | "sinfo" | "sacct" => as_is(name, words),
        _ => return None,
    })
}

/// For the verb that does what has no verb of its own, and says what is wrong with the words.
fn as_is(name: &str, words: &[OsString]) -> Vec<OsString> {
    let head = ["coloc", VERB, name, "--"].map(OsString::from);
    head.into_iter().chain(words.iter().cloned()).collect()
}

/// Options whose values Slurm has and the parser has not, or the other way round.
pub(crate) fn with_values(words: &[OsString]) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let text = word.to_str().unwrap_or_default();
        let next_is_number =
            || words.get(at + 1).and_then(|next| next.to_str()?.parse::<i32>().ok()).is_some();
        all.push(match text {
            "--nice" if !next_is_number() => "--nice=100".into(),
            _ if text.starts_with("--exclusive=") => "--exclusive".into(),
            _ if text.starts_with("--get-user-env=") => "--get-user-env".into(),
            "--usage" => "--help".into(),
            _ => word.clone(),
        });
    }
    all
}

/// `srun` outside of a task submits one, whose program is srun within it. On a terminal of its own the command is the
/// program.
fn of_srun(words: &[OsString]) -> Option<Vec<OsString>> {
    let read = Words::read(words).ok().filter(|read| !read.command.is_empty())?;
    let mut run: Vec<OsString> = ["coloc", "run"].map(OsString::from).to_vec();
    let is_terminal = read.has("pty");
    run.extend(is_terminal.then(|| "--pty".into()));
    run.extend(with_values(&read.of_allocation()));
    if !read.has("job-name") {
        let name = Path::new(read.command.first()?).file_name()?;
        run.extend(["--job-name".into(), name.to_owned()]);
    }
    run.extend(read.value("chdir").into_iter().flat_map(|at| ["--chdir".into(), at.to_owned()]));
    run.push("--".into());
    if !is_terminal {
        run.push(std::env::current_exe().ok()?.into_os_string());
        run.extend([VERB, "srun", "--"].map(OsString::from));
        run.extend(read.of_copies());
        run.push("--".into());
    }
    run.extend(read.command);
    Some(run)
}

fn of_salloc(words: &[OsString]) -> Option<Vec<OsString>> {
    let read = Words::read(words).ok()?;
    let head = ["coloc", "shell"].map(OsString::from).into_iter();
    let chdir = read.value("chdir").into_iter().flat_map(|at| ["--chdir".into(), at.to_owned()]);
    let options = with_values(&read.of_allocation()).into_iter().chain(chdir);
    let command = (!read.command.is_empty()).then(|| OsString::from("--"));
    Some(head.chain(options).chain(command).chain(read.command.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn only_slurms_names_are_translated() {
        let squeue = translate("squeue", &words("-h -u ann")).expect("a name of Slurm's");
        assert_eq!(squeue, words("coloc queue --slurm --noheader -u ann"));
        assert_eq!(translate("coloc", &words("-h")), None);
        let sbatch = translate("sbatch", &words("-h")).expect("a name of Slurm's");
        assert_eq!(sbatch, words("coloc submit --slurm -h"));
        assert!(NAMES.iter().all(|name| translate(name, &[]).is_some()));
    }

    #[test]
    fn srun_outside_is_run() {
        let run = |line: &str| translated("srun", &words(line), false).expect("a name of Slurm's");
        let pty = run("--pty -G 2 -t 60 bash -i");
        assert_eq!(pty, words("coloc run --pty --gpus=2 --time=60 --job-name bash -- bash -i"));
        let plain = run("-n 2 -l --gres=gpu:2 -J x python a.py");
        let own = std::env::current_exe().expect("a path");
        let head = words("coloc run --ntasks=2 --gres=gpu:2 --job-name=x --");
        let tail = words("slurm srun -- --ntasks=2 --label -- python a.py");
        assert_eq!(plain, [head, vec![own.into_os_string()], tail].concat());
        let ours = run("--gpu-mem 1G --retry=2 hostname");
        assert!(
            ours.starts_with(&words("coloc run --gpu-mem=1G --retry=2 --job-name hostname --"))
        );
        // Inside, and where the words make no sense, it is srun that answers.
        let inside = translated("srun", &words("-l x"), true);
        assert_eq!(inside, Some(words("coloc slurm srun -- -l x")));
        assert_eq!(run("--nope x"), words("coloc slurm srun -- --nope x"));
        let salloc = translated("salloc", &words("-G 1 --nice x"), false);
        assert_eq!(salloc, Some(words("coloc shell --gpus=1 --nice=100 -- x")));
    }

    #[test]
    fn values_are_as_slurm_has_them() {
        let with = |line: &str| with_values(&words(line));
        assert_eq!(with("--nice --exclusive=user -J x"), words("--nice=100 --exclusive -J x"));
        assert_eq!(with("--nice 7 --get-user-env=10L"), words("--nice 7 --get-user-env"));
    }
}
