//! What somebody measured of tasks, for the scheduler to believe.

use super::{Answer, Owner, Refused};
use crate::journal::Entry;
use crate::spec::TaskSpec;
use crate::text::RawText;
use coloc_core::belief::Lesson;
use coloc_core::{Effect, Event};
use coloc_model::Time;
use serde::{Deserialize, Serialize};

/// What was found out about a command.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teaching {
    /// The command.
    pub command: Vec<RawText>,
    /// Where it ran.
    pub directory: RawText,
    /// What was found.
    pub lesson: Lesson,
}

impl Owner {
    /// Believes what was measured. It counts once it is on the disk.
    pub(super) fn teach(
        &mut self,
        now: Time,
        teaching: Teaching,
        wishes: &mut Vec<Effect>,
    ) -> Answer {
        let Teaching { command, directory, lesson } = teaching;
        if command.is_empty() {
            return Answer::Refused(Refused::Invalid("no command was given".to_owned()));
        }
        if self.disk_full {
            return Answer::Refused(Refused::DiskFull);
        }
        let signature = TaskSpec::new(String::new(), command, directory).signature();
        self.pending.push(Entry::Lesson(signature.clone(), lesson));
        let signature = self.names.number(signature);
        self.scheduler.note(now, Event::Taught { signature, lesson }, wishes);
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
