//! What a user measured of tasks, for the scheduler to believe.

use crate::bounds;
use crate::journal::Entry;
use crate::owner::commands::invalid::Invalid;
use crate::owner::{Owner, Refused};
use coloc_api::request::Teaching;
use coloc_api::spec::TaskSpec;
use coloc_core::{Effect, Event};
use coloc_model::{Lesson, Time};

impl Owner {
    /// Believes what was measured. It counts once it is on the disk.
    pub(in crate::owner) fn teach(
        &mut self,
        now: Time,
        teaching: Teaching,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let Teaching { command, script, directory, lesson } = teaching;
        if command.is_empty() {
            return Err(Invalid::NoCommand.into());
        }
        // As a task has it that is submitted so.
        let spec = TaskSpec { script, ..TaskSpec::new(String::new(), command, directory) };
        if let Err(error) = bounds::check(&spec, 1, &self.settings.bounds) {
            return Err(Invalid::from(error).into());
        }
        if self.disk_full {
            return Err(Refused::Journal(self.why_unwritten()));
        }
        let signature = spec.signature();
        self.pending.push(Entry::Lesson(signature.clone(), lesson));
        let signature = self.names.number(signature);
        self.scheduler.note(now, Event::Taught { signature, lesson }, effects);
        Ok(())
    }

    /// What an earlier daemon was taught.
    pub(in crate::owner) fn remember(&mut self, lessons: Vec<(String, Lesson)>) {
        let now = self.clock.now();
        for (signature, lesson) in lessons {
            let signature = self.names.number(signature);
            // No task waits yet, so there are no effects.
            self.scheduler.note(now, Event::Taught { signature, lesson }, &mut Vec::new());
        }
    }
}
