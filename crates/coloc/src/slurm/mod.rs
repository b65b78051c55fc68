//! Slurm's names for what coloc does: a link to this binary by the name of sbatch, squeue or scancel is that command.

pub(crate) mod options;

use std::ffi::OsString;

/// The names that links may have.
pub(crate) const NAMES: [&str; 3] = ["sbatch", "squeue", "scancel"];

/// The words that the same request has here; `None` for every other name.
pub(crate) fn translate(name: &str, words: &[OsString]) -> Option<Vec<OsString>> {
    let (verb, short): (&[&str], &[(&str, &str)]) = match name {
        "sbatch" => (&["submit", "--slurm"], &[]),
        // Here -h is help. All partitions, and an array task by task, are what there is.
        "squeue" => (
            &["queue", "--slurm"],
            &[
                ("-h", "--noheader"),
                ("-a", "--slurm"),
                ("--all", "--slurm"),
                ("-r", "--slurm"),
                ("--array", "--slurm"),
            ],
        ),
        "scancel" => (&["cancel", "--slurm"], &[("-n", "--name"), ("-t", "--state")]),
        _ => return None,
    };
    let ours = |word: &OsString| {
        let known = short.iter().find(|(theirs, _)| word == *theirs);
        known.map_or_else(|| word.clone(), |(_, ours)| OsString::from(ours))
    };
    let head = ["coloc"].iter().chain(verb).map(OsString::from);
    // What follows a script's name is the script's.
    let words: Vec<OsString> = match name {
        "sbatch" => words.to_vec(),
        _ => words.iter().map(ours).collect(),
    };
    Some(head.chain(words).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slurms_names_are_translated() {
        let words = ["-h", "-u", "ann"].map(OsString::from);
        let squeue = translate("squeue", &words).expect("a name of Slurm's");
        assert_eq!(squeue, ["coloc", "queue", "--slurm", "--noheader", "-u", "ann"]);
        assert_eq!(translate("coloc", &words), None);
        assert_eq!(translate("sbatch", &words).map(|words| words[3].clone()), Some("-h".into()));
    }
}
