//! Slurm's names: commands that a link to the program may have the name of, and who uses them.

use crate::spec::TaskSpec;

/// What a link to the program may be called.
pub const COMMANDS: [&str; 8] =
    ["sbatch", "srun", "salloc", "squeue", "scancel", "scontrol", "sinfo", "sacct"];

/// Says how many copies srun starts. Ours, since frameworks take Slurm's name for it as a sign that srun did.
pub const NTASKS: &str = "COLOC_NTASKS";

/// Begins a line for Slurm in the head of a script.
const DIRECTIVE: &[u8] = b"#SBATCH";

/// Whether a task is one of Slurm's kind: its script has lines for Slurm, or it names one of Slurm's commands.
pub fn is_for_slurm(spec: &TaskSpec) -> bool {
    let texts = spec.script.iter().chain(&spec.command);
    let mut texts = texts.map(crate::text::RawText::as_bytes);
    texts.any(|text| has(text, DIRECTIVE) || COMMANDS.iter().any(|name| has_word(text, name)))
}

/// Whether a script speaks of a variable, by this very name.
pub fn speaks_of(spec: &TaskSpec, variable: &str) -> bool {
    spec.script.iter().chain(&spec.command).any(|text| has_word(text.as_bytes(), variable))
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The word, with nothing beside it that could be part of a longer name.
fn has_word(text: &[u8], word: &str) -> bool {
    let is_part = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    };
    let word = word.as_bytes();
    let before = |at: usize| at.checked_sub(1).and_then(|at| text.get(at));
    let is_it = |at: &usize| {
        text[*at..].starts_with(word)
            && !is_part(before(*at))
            && !is_part(text.get(*at + word.len()))
    };
    (0..text.len()).any(|at| is_it(&at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_slurms_by_what_it_says() {
        let spec = |command: &[&str], script: Option<&str>| {
            let command = command.iter().map(|&word| word.into()).collect();
            let plain = TaskSpec::new("t".to_owned(), command, "/".into());
            TaskSpec { script: script.map(Into::into), ..plain }
        };
        assert!(is_for_slurm(&spec(&["job.sh"], Some("#!/bin/sh\n#SBATCH -n 2\ntrue\n"))));
        assert!(is_for_slurm(&spec(&["job.sh"], Some("#!/bin/sh\nsrun -l hostname\n"))));
        assert!(is_for_slurm(&spec(&["sh", "-c", "time srun x"], None)));
        assert!(!is_for_slurm(&spec(&["python", "train.py"], None)));
        assert!(!is_for_slurm(&spec(&["python", "my_srun.py", "--srun-dir"], None)));
        let script = "#!/bin/sh\necho $SLURM_NTASKS_PER_NODE ${SLURM_NPROCS}\n";
        let says = |name| speaks_of(&spec(&["x"], Some(script)), name);
        assert!(says("SLURM_NPROCS") && !says("SLURM_NTASKS"));
    }
}
