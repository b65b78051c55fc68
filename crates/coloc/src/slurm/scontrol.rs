//! `scontrol`: what has a verb here.

use std::ffi::OsString;

/// Words of `scontrol update` and the flags that they are here.
const KEYS: [(&str, &str); 14] = [
    ("name", "--name"),
    ("jobname", "--name"),
    ("timelimit", "--time"),
    ("priority", "--priority"),
    ("nice", "--nice"),
    ("dependency", "--after"),
    ("starttime", "--begin"),
    ("eligibletime", "--begin"),
    ("gres", "--gpus"),
    ("trespernode", "--gpus"),
    ("tresperjob", "--gpus"),
    ("gpus", "--gpus"),
    ("features", "--gpu-kind"),
    ("featureslist", "--gpu-kind"),
];

/// The words that the same request has here; `None` if there is no such verb.
pub(super) fn translate(words: &[OsString]) -> Option<Vec<OsString>> {
    let text: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let (verb, rest) = text.split_first()?;
    let ids = || rest.iter().flat_map(|word| word.split(',')).filter(|id| !id.is_empty());
    let ids = || ids().map(|id| after(id, "jobid").unwrap_or(id)).map(OsString::from);
    let with = |head: &[&str]| -> Vec<OsString> {
        ["coloc"].iter().chain(head).map(OsString::from).chain(ids()).collect()
    };
    match verb.to_ascii_lowercase().as_str() {
        "hold" | "uhold" => Some(with(&["hold", "--slurm"])),
        "release" => Some(with(&["release", "--slurm"])),
        "requeue" => Some(with(&["requeue", "--slurm"])),
        "suspend" => Some(with(&["cancel", "--slurm", "--signal", "STOP"])),
        "resume" => Some(with(&["cancel", "--slurm", "--signal", "CONT"])),
        "wait_job" => Some(with(&["wait"])),
        "update" => update(rest),
        _ => None,
    }
}

/// What follows a key, whatever its letters.
fn after<'a>(word: &'a str, key: &str) -> Option<&'a str> {
    let (known, value) = word.split_once('=')?;
    known.eq_ignore_ascii_case(key).then_some(value)
}

/// `JobId=7 TimeLimit=2:00:00`; `None` if a word is not known.
fn update(words: &[&str]) -> Option<Vec<OsString>> {
    let mut all: Vec<OsString> = ["coloc", "update"].map(OsString::from).to_vec();
    for word in words {
        if let Some(ids) = after(word, "jobid").or_else(|| after(word, "job")) {
            all.extend(ids.split(',').map(OsString::from));
            continue;
        }
        let (key, value) = word.split_once('=')?;
        let key = key.to_ascii_lowercase();
        let (_, flag) = KEYS.iter().find(|(known, _)| *known == key)?;
        let value = match *flag {
            "--gpus" => gpus(value)?,
            "--after" if value.is_empty() => "none".to_owned(),
            // More than there is now cannot be said so.
            "--time" if value.starts_with(['+', '-']) => return None,
            _ => value.to_owned(),
        };
        all.push(format!("{flag}={value}").into());
    }
    Some(all)
}

/// `gpu:2`, `gres/gpu:a100:2` or `2`.
fn gpus(text: &str) -> Option<String> {
    let wish = crate::parse::slurm::gres(text).or_else(|_| crate::parse::slurm::gpu_wish(text));
    wish.ok().map(|wish| wish.count.to_string())
}

/// What `scontrol update` knows, for a user who asked for something else.
pub(crate) fn known_keys() -> String {
    let keys: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    keys.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_verb_is_that_verb() {
        let words = |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        let told = |line: &str| translate(&words(line));
        assert_eq!(told("hold 7,8"), Some(words("coloc hold --slurm 7 8")));
        assert_eq!(told("requeue JobId=7"), Some(words("coloc requeue --slurm 7")));
        assert_eq!(told("suspend 7"), Some(words("coloc cancel --slurm --signal STOP 7")));
        let update = "update JobId=7 TimeLimit=2:00:00 JobName=x Gres=gpu:2 Dependency=";
        let ours = "coloc update 7 --time=2:00:00 --name=x --gpus=2 --after=none";
        assert_eq!(told(update), Some(words(ours)));
        for other in ["", "show job 7", "update JobId=7 Nodes=2", "update JobId=7 TimeLimit=+5"] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
