//! What `--help` says of each verb before its flags: examples that can be typed.

use clap::Command;

/// Each verb with examples.
const EXAMPLES: [(&str, &[&str]); 45] = [
    ("daemon", &["coloc daemon &", "coloc daemon --emulate 4xA100-40GB --time-scale 20"]),
    (
        "submit",
        &[
            "coloc submit --gpu-mem 12G -- python train.py --lr 1e-3",
            "coloc submit -G 2 -t 4h -J resnet -o logs/%j.out train.sh",
            "coloc submit -a 1-100%8 --gpu-mem 8G -- python train.py",
        ],
    ),
    ("run", &["coloc run --gpu-mem 12G -- python train.py"]),
    (
        "sweep",
        &[
            "coloc sweep --grid lr=1e-3,1e-4 --grid seed=1,2,3 -- python train.py --lr {lr} --seed {seed}",
        ],
    ),
    (
        "queue",
        &[
            "coloc queue --me",
            "coloc queue --expected",
            "coloc queue -t pending -r",
            "coloc queue --watch",
        ],
    ),
    ("replay", &["coloc replay --trace jobs.csv --time-scale 100"]),
    ("agree", &["coloc agree --trace jobs.csv --fleet 4xA100-40GB"]),
    ("history", &["coloc history --since yesterday -n 20"]),
    (
        "report",
        &[
            "coloc report --since 7d --by user",
            "coloc report --since 2027-01-01 --until 2027-02-01 --by day --csv > january.csv",
            "coloc report --since 30d --html report.html",
        ],
    ),
    (
        "export",
        &[
            "coloc export mlflow 450 --to mlruns",
            "coloc export mlflow 3-9 --to mlruns --experiment sweep",
        ],
    ),
    ("show", &["coloc show last", "coloc show 7 --json"]),
    ("why", &["coloc why last", "coloc why 7"]),
    ("logs", &["coloc logs -f last", "coloc logs -n 20 7", "coloc logs --attempt 1 7"]),
    ("wait", &["coloc wait 7-9 && echo done"]),
    ("cancel", &["coloc cancel 7-9", "coloc cancel all", "coloc cancel --signal USR1 7"]),
    ("hold", &["coloc hold 7-9"]),
    ("release", &["coloc release 7-9"]),
    ("requeue", &["coloc requeue 7"]),
    ("update", &["coloc update 7 --gpu-mem 20G -t 8h"]),
    ("attach", &["coloc attach 7"]),
    ("exec", &["coloc exec 7 -- nvidia-smi"]),
    ("shell", &["coloc shell -G 1 --gpu-mem 12G -t 2h"]),
    ("drain", &["coloc drain --gpu 3 --reason fan", "coloc drain --wait"]),
    ("resume", &["coloc resume --gpu 3", "coloc resume"]),
    ("reserve", &["coloc reserve --gpu 3 --for ann,@lab --until 18:00"]),
    ("return", &["coloc return --gpu 3"]),
    ("config", &["coloc config check", "coloc config show --origin", "coloc config reload"]),
    ("token", &["(umask 077; coloc token create --label laptop > token)", "coloc token revoke 3"]),
    ("state", &["coloc state check", "coloc state backup backup.db"]),
    ("api", &["coloc api > openapi.json"]),
    ("init", &["coloc init"]),
    ("completions", &["source <(coloc completions bash)"]),
    ("man", &["coloc man submit | man -l -"]),
    ("demo", &["coloc demo", "coloc demo --simulated"]),
    ("top", &["coloc top", "coloc top --once"]),
    ("web", &["coloc web --print"]),
    (
        "simulate",
        &[
            "coloc simulate --trace jobs.csv --fleet 15x4xV100-16GB --queue best-effort --place magm --share mps",
        ],
    ),
    (
        "compare",
        &[
            "coloc compare --trace jobs.csv --fleet 4xA100-40GB --policies exclusive,carma-v2,coloc --html compare.html",
        ],
    ),
    (
        "collocate",
        &[
            "coloc collocate --workload resnet26-cifar10 --copies 1,2,3,5,7 --share streams,mps,mig",
            "coloc collocate -- python train.py",
        ],
    ),
    ("whatif", &["coloc whatif --since 7d --preset coloc --fleet 8xA100-40GB"]),
    (
        "trace",
        &[
            "coloc trace generate --tasks 10000 --gpus 100 --load 0.9 --seed 1 -o jobs.csv",
            "coloc trace info jobs.csv",
        ],
    ),
    ("estimate", &["coloc estimate --summary model.txt --batch 64 --optimizer adam"]),
    ("gpus", &["coloc gpus", "coloc gpus --activity"]),
    ("doctor", &["coloc doctor"]),
    ("emu", &["coloc emu run --fleet 4xA100-40GB -- nvidia-smi"]),
];

/// The examples of a verb.
fn examples(verb: &str) -> Option<&'static [&'static str]> {
    EXAMPLES.iter().find(|(known, _)| *known == verb).map(|(_, examples)| *examples)
}

/// The program with examples in its help, above the flags.
pub(crate) fn arranged(program: Command) -> Command {
    let verbs: Vec<String> =
        program.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    verbs.into_iter().fold(program, |program, verb| {
        let Some(examples) = examples(&verb) else { return program };
        let lines: Vec<String> = examples.iter().map(|line| format!("  {line}")).collect();
        // In a template, braces are places to fill.
        let lines = lines.join("\n");
        program.mut_subcommand(verb, |verb| {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let title = if examples.len() == 1 { "Example" } else { "Examples" };
            verb.about(about.clone())
                .before_help(format!("{about}\n\n{title}:\n{lines}"))
                .help_template("{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}")
        })
    })
}

/// Whether the words before a task's command ask for help.
pub(crate) fn is_asked(words: &[std::ffi::OsString]) -> bool {
    let own = words.iter().take_while(|word| *word != "--");
    own.into_iter().any(|word| word == "-h" || word == "--help")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn every_verb_has_an_example_that_can_be_typed() {
        let (program, mut wrong) = (Cli::command(), Vec::new());
        for verb in program.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let name = verb.get_name();
            let examples = examples(name).unwrap_or_default();
            assert!(!examples.is_empty(), "{name} has no example: add one in help.rs");
            for example in examples.iter().filter(|example| example.starts_with("coloc ")) {
                let end = example.find(['|', '>', '&']).unwrap_or(example.len());
                let words = example[..end].replace(['"'], "");
                let words = words.split_whitespace().map(std::ffi::OsString::from);
                match Cli::command().try_get_matches_from(words) {
                    Ok(_) => {}
                    Err(error) if !error.use_stderr() => {}
                    Err(error) => wrong.push(format!("{example}: {error}")),
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn help_opens_with_examples_and_ends_with_the_connection() {
        let mut program = arranged(Cli::command());
        let verbs: Vec<String> = program
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set() && !verb.has_subcommands())
            .map(|verb| verb.get_name().to_owned())
            .collect();
        for verb in verbs {
            let help =
                program.find_subcommand_mut(&verb).expect("a verb").render_help().to_string();
            let at = |what: &str| help.find(what);
            assert!(at("Example") < at("Usage:") && at("Example").is_some(), "{help}");
            if let Some(connection) = at("\nConnection:") {
                let headings = help.match_indices("\n").filter(|(at, _)| {
                    let line = help[at + 1..].lines().next().unwrap_or_default();
                    line.ends_with(':') && !line.starts_with(' ')
                });
                let last = headings.map(|(at, _)| at).last();
                assert_eq!(last, Some(connection), "{verb}: {help}");
            }
        }
    }
}
