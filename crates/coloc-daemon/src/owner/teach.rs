//! What somebody measured of tasks, for the scheduler to believe.

use super::{Answer, Owner, Refused};
use crate::journal::Entry;
use crate::spec::TaskSpec;
use crate::text::RawText;
use coloc_core::belief::Lesson;
use coloc_core::{Effect, Event};
use coloc_model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found out about a command.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teaching {
    /// The command.
    pub command: Vec<RawText>,
    /// The script that is its first word, if submitted tasks have a copy of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<RawText>,
    /// Where it ran.
    pub directory: RawText,
    /// What was found.
    #[schemars(with = "LessonShape")]
    pub lesson: Lesson,
}

/// How a [`Lesson`] is written, for those who write one without us.
#[derive(JsonSchema)]
#[schemars(rename = "Lesson")]
#[expect(dead_code, reason = "only its shape is of use")]
struct LessonShape {
    /// SM activity alone, from 0 to 1.
    sm: Option<f64>,
    /// The most memory it held, in bytes.
    peak: Option<u64>,
    /// How it takes neighbours, and is one.
    temper: Option<TemperShape>,
}

/// Sensitivity and pressure, of the usual.
#[derive(JsonSchema)]
#[schemars(rename = "Temper")]
#[expect(dead_code, reason = "only its shape is of use")]
struct TemperShape {
    /// How much others slow it.
    sensitivity: f64,
    /// How much it slows others.
    pressure: f64,
}

impl Owner {
    /// Believes what was measured. It counts once it is on the disk.
    pub(super) fn teach(
        &mut self,
        now: Time,
        teaching: Teaching,
        wishes: &mut Vec<Effect>,
    ) -> Answer {
        let Teaching { command, script, directory, lesson } = teaching;
        if command.is_empty() {
            return Answer::Refused(Refused::Invalid("no command was given".to_owned()));
        }
        if self.disk_full {
            return Answer::Refused(Refused::DiskFull);
        }
        // As a task has it that is submitted so.
        let spec = TaskSpec { script, ..TaskSpec::new(String::new(), command, directory) };
        let signature = spec.signature();
        self.pending.push(Entry::Lesson(signature.clone(), lesson));
        for signature in self.all_signatures(&signature) {
            self.scheduler.note(now, Event::Taught { signature, lesson }, wishes);
        }
        Answer::Taught
    }

    /// What an earlier daemon was taught.
    pub(super) fn remember(&mut self, lessons: Vec<(String, Lesson)>) {
        let now = self.clock.now();
        for (signature, lesson) in lessons {
            let signature = self.names.number(signature);
            // Nobody waits yet, so nothing is wished for.
            self.scheduler.note(now, Event::Taught { signature, lesson }, &mut Vec::new());
        }
    }
}
