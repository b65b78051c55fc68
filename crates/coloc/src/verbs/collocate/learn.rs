//! What trials of a command side by side teach the scheduler.

use crate::live::experiment::{Alone, Found, Plan, Together};
use crate::submission::batch_script::Prepared;
use coloc_api::request::Teaching;
use coloc_api::text::RawText;
use coloc_core::belief::{lost, product, profile_of_pair};
use coloc_model::{Bytes, InterferenceProfile, Lesson, Share};
use serde::Serialize;

/// What the scheduler was told of a command.
#[derive(Clone, Serialize)]
pub(super) struct Learned {
    pub(super) command: String,
    #[serde(flatten)]
    pub(super) lesson: Lesson,
}

/// What the scheduler may learn: how busy each command keeps a GPU, its memory, and how the two take each other.
pub(super) fn lessons(plan: &Plan, prepared: Prepared, found: &Found) -> Vec<(Teaching, Learned)> {
    let directory = std::env::current_dir().unwrap_or_default();
    let of = |(command, script): (Vec<RawText>, _),
              alone: &Alone,
              interference: Option<InterferenceProfile>| {
        let peak = Bytes::from_mib_f64(alone.gauge.memory_mib);
        let peak = Some(peak).filter(|peak| *peak > Bytes::ZERO);
        let lesson = Lesson { sm: alone.gauge.smact, peak, interference };
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let learned = Learned { command: words.join(" "), lesson };
        let directory = directory.clone().into_os_string().into();
        (Teaching { command, script, directory, lesson }, learned)
    };
    let profiles = profiles(found);
    let command = prepared.command.into_iter().map(RawText::from).collect();
    let own = profiles.map(|(own, _)| own);
    let mut lessons = vec![of((command, prepared.script), &found.alone, own)];
    if let (Some(with), Some(alone)) = (&plan.with, &found.with_alone) {
        lessons.push(of((with.clone(), None), alone, profiles.and_then(|(_, other)| other)));
    }
    lessons
}

/// Interference profiles of the command and of what ran beside it, mean over the trials that tell.
fn profiles(found: &Found) -> Option<(InterferenceProfile, Option<InterferenceProfile>)> {
    let own = found.alone.gauge.smact?.get();
    let with = match &found.with_alone {
        Some(alone) => Some(alone.gauge.smact?.get()),
        None => None,
    };
    let (mut losses, mut others) = (Vec::new(), Vec::new());
    // In partitions no task feels neighbours; taking turns says less than working at the same time.
    let tried = |share: Share| {
        let several = |together: &Together| together.slowdowns.len() > 1;
        found.trials.iter().any(|t| t.share == share && t.outcome.as_ref().is_ok_and(several))
    };
    let telling = if tried(Share::Mps) { Share::Mps } else { Share::Streams };
    for trial in found.trials.iter().filter(|trial| trial.share == telling) {
        let Ok(together) = &trial.outcome else { continue };
        let copies = f64::from(trial.copies);
        let beside = own * (copies - 1.0) + with.unwrap_or(0.0);
        let mine = &together.slowdowns[..trial.copies as usize];
        let mean = mine.iter().sum::<f64>() / copies;
        losses.extend(lost(product(telling), mean, own, beside));
        if let (Some(with), Some(&slowdown)) = (with, together.slowdowns.get(mine.len())) {
            others.extend(lost(product(telling), slowdown, with, own * copies));
        }
    }
    let mean = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
    let mine = mean(&losses)?;
    match with {
        None => Some((profile_of_pair(mine, mine), None)),
        Some(_) => {
            let theirs = mean(&others)?;
            Some((profile_of_pair(mine, theirs), Some(profile_of_pair(theirs, mine))))
        }
    }
}

pub(super) fn describe(lesson: &Lesson) -> String {
    let parts = [
        lesson.sm.map(|sm| format!("SM activity {:.2} alone", sm.get())),
        lesson.peak.map(|peak| format!("{peak} of memory")),
        lesson.interference.map(|profile| {
            let InterferenceProfile { sensitivity, pressure } = profile;
            format!("sensitivity {sensitivity:.2} and pressure {pressure:.2} of the usual")
        }),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submission::batch_script;
    use coloc_api::spec::TaskSpec;
    use std::ffi::OsString;

    #[test]
    fn what_is_learned_of_a_script_is_learned_of_its_tasks() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("job.sh");
        std::fs::write(&file, "#!/bin/sh -e\n#SBATCH -G 1\npython train.py\n").unwrap();
        let typed = || vec![file.clone().into_os_string(), OsString::from("--seed=3")];
        let prepared = || batch_script::prepared(typed(), place.path(), false).unwrap();
        let plan = Plan {
            command: prepared().in_place(),
            with: None,
            copies: vec![1],
            shares: vec![Share::Streams],
            progress: None,
            warmup_s: 0.0,
            seconds: 1.0,
        };
        let text = file.to_str().unwrap();
        assert_eq!(plan.command, ["/bin/sh", "-e", text, "--seed=3"].map(RawText::from));
        let found = Found {
            gpu: "A100".to_owned(),
            emulated: true,
            alone: Alone::default(),
            with_alone: None,
            trials: Vec::new(),
        };
        let (teaching, learned) = lessons(&plan, prepared(), &found).remove(0);
        assert_eq!(learned.command, format!("{text} --seed=3"));
        // As `submit` has it.
        let Prepared { command, script, .. } = prepared();
        let words = |command: Vec<OsString>| command.into_iter().map(RawText::from).collect();
        let spec = |command, script, directory| TaskSpec {
            script,
            ..TaskSpec::new(String::new(), command, directory)
        };
        let submitted = spec(words(command), script, teaching.directory.clone());
        let taught = spec(teaching.command, teaching.script, teaching.directory);
        assert!(submitted.script.is_some());
        assert_eq!(taught.signature(), submitted.signature());
    }
}
