//! Another policy while tasks run: a new scheduler takes over what the old one knows, as after a restart, but without one.

use super::{Names, Owner, Refused};
use crate::agreements::{Book, Unknown};
use crate::hardware::can_share;
use crate::journal::Setup;
use crate::record::Phase;
use crate::settings::Settings;
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{Fleet, TaskId, Time};

/// A scheduler that knows the machine and what is agreed with people, but no task yet.
pub(crate) fn scheduler(
    fleet: &Fleet,
    settings: &Settings,
    names: &mut Names,
) -> Result<(Scheduler, Book), Unknown> {
    let book = settings.agreements.look_up()?;
    let mut accounts = book.accounts();
    // Those who are known need their accounts at once; others get theirs when they come.
    for uid in book.named() {
        names.user(uid.0);
    }
    for (user, uid) in names.known() {
        accounts.set_user(user, book.account(uid));
    }
    let mut scheduler = Scheduler::new(fleet, settings.policy).with_accounts(accounts);
    if let Some(samples) = &settings.history {
        scheduler = scheduler.with_history(samples.clone());
    }
    Ok((scheduler, book))
}

impl Owner {
    /// Has other settings from now on. Running tasks stay where they are, waiting ones keep their order of arrival.
    pub(super) fn reconfigure(
        &mut self,
        now: Time,
        settings: Settings,
        wishes: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let refused = |problem: &dyn std::fmt::Display| Refused::Invalid(problem.to_string());
        can_share(&self.fleet, settings.policy.share).map_err(|error| refused(&error))?;
        if !self.settings.schedules_like(&settings) {
            let new = scheduler(&self.fleet, &settings, &mut self.names);
            let (mut new, book) = new.map_err(|error| refused(&error))?;
            let gpus = self.fleet.gpus().iter().map(|gpu| gpu.model).collect();
            let time_scale = self.launcher.time_scale;
            let setup = Setup { policy: settings.policy, gpus, time_scale };
            self.journal.note_setup(&setup).map_err(|error| refused(&error))?;
            new.remember(now, &self.scheduler);
            self.scheduler = new.with_speeds(self.barred.clone());
            self.book = book;
            self.introduce(now, wishes);
        }
        self.launcher.grace = settings.grace;
        let _ = self.retention.send(settings.retention);
        self.settings = settings;
        Ok(())
    }

    /// Tells a new scheduler of everything that the old one was told.
    fn introduce(&mut self, now: Time, wishes: &mut Vec<Effect>) {
        // What the old one wanted and nobody has done, the new one may want differently.
        self.deferred.clear();
        let in_core: Vec<TaskId> =
            self.tasks.values().filter(|live| live.in_core).map(|live| live.record.id).collect();
        for task in in_core {
            let Some(core_task) = self.as_core_task(task) else { continue };
            let Some(live) = self.tasks.get(&task) else { continue };
            let record = &live.record;
            let on_gpus = matches!(record.phase, Phase::Launching | Phase::Running);
            let stops = matches!(record.phase, Phase::Preempting) && live.ending.is_some();
            let placement = record.placement.clone().filter(|_| on_gpus || stops);
            let goes = live.ending.is_some();
            let event = match placement {
                Some(placement) => {
                    let started = record.started.map_or(now, |started| self.clock.time(started));
                    Event::Adopted { task: core_task, placement, started }
                }
                None => Event::Submitted(core_task),
            };
            self.scheduler.note(now, event, wishes);
            if goes {
                // Whoever is on the way out has been told so already.
                let mut again = Vec::new();
                self.scheduler.note(now, Event::CancelRequested(task), &mut again);
                again.retain(|wish| !matches!(wish, Effect::Stop(_)));
                wishes.append(&mut again);
            }
        }
        self.wake_at = now;
    }
}
