//! Telling hooks: a notice is written down with what happened, sent once that is on the disk, and forgotten when it was
//! told. A restart sends again what it does not know to have been told.

use super::deadlines::Deadlines;
use crate::journal::Entry;
use crate::notices::{DeliveryError, HookOf, Notice};
use crate::owner::{Invalid, Live, Owner, whole_view};
use crate::record::{Record, Uid};
use coloc_api::notify::{Channel, HookUrl, MOST_HOOKS, Notify, NotifyError, NotifyEvent};
use coloc_api::spec::TaskSpec;
use coloc_api::view::StoryLine;
use coloc_model::{TaskId, TaskState};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Notices that one user's tasks may have waiting. An array of a hundred thousand must not fill the journal with them.
const MOST_OF_A_USER: usize = 1_000;
/// Notices that are sent at once.
const AT_ONCE: usize = 8;
/// Of them, of one user's tasks.
const AT_ONCE_OF_A_USER: usize = 2;
/// How often one is tried.
const MOST_TRIES: u32 = 5;
/// From the first try to the second; each pause is four times as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// Notices that were not told yet.
#[derive(Debug)]
pub(in crate::owner) struct Outbox {
    waiting: BTreeMap<u64, Notice>,
    /// When each is to be sent; those that are being sent are not in it.
    due: BTreeSet<(Instant, u64)>,
    sending: BTreeSet<u64>,
    next: u64,
    /// When waits become long.
    long_waits: Deadlines,
}

impl Outbox {
    /// With what was not told before a restart, and the number of the next notice.
    pub(in crate::owner) fn of((saved, next): (Vec<Notice>, u64), now: Instant) -> Self {
        let due = saved.iter().map(|notice| (now, notice.id)).collect();
        let waiting = saved.into_iter().map(|notice| (notice.id, notice)).collect();
        let (sending, long_waits) = (BTreeSet::new(), Deadlines::default());
        Outbox { waiting, due, sending, next, long_waits }
    }

    /// When the next one is to be sent, if there is room for it, or a wait becomes long.
    pub(in crate::owner) fn next_due(&self) -> Option<Instant> {
        let has_room = self.sending.len() < AT_ONCE;
        let next = has_room.then(|| self.sendable().next().map(|(at, _)| at)).flatten();
        [next, self.long_waits.next()].into_iter().flatten().min()
    }

    fn of_user(&self, owner: Uid) -> usize {
        self.waiting.values().filter(|notice| notice.owner == owner).count()
    }

    /// Notices whose users have room for one more at once, by when they are due.
    fn sendable(&self) -> impl Iterator<Item = (Instant, u64)> + '_ {
        self.due.iter().copied().filter(|(_, id)| {
            let owner = self.waiting.get(id).map(|notice| notice.owner);
            let theirs = self.sending.iter().filter_map(|id| self.waiting.get(id));
            theirs.filter(|notice| Some(notice.owner) == owner).count() < AT_ONCE_OF_A_USER
        })
    }

    fn take_due(&mut self, now: Instant) -> Option<Notice> {
        if self.sending.len() >= AT_ONCE {
            return None;
        }
        let due = self.sendable().next().filter(|(at, _)| *at <= now)?;
        self.due.remove(&due);
        self.sending.insert(due.1);
        self.waiting.get(&due.1).cloned()
    }
}

/// What an end is, the most telling first.
fn events_of(phase: TaskState) -> &'static [NotifyEvent] {
    match phase {
        TaskState::Completed | TaskState::Cancelled => &[NotifyEvent::End],
        _ => &[NotifyEvent::Fail, NotifyEvent::End],
    }
}

/// What a hook is told, as JSON.
fn body(id: u64, event: NotifyEvent, at: f64, record: &Record, spec: &TaskSpec) -> String {
    let task = whole_view(record, spec);
    let (schema, event) = (coloc_api::SCHEMA, event.name());
    let usage = &record.accounting;
    let body = serde_json::json!({
        "schema": schema, "id": id, "event": event, "at_s": at, "task": task,
        "energy_j": usage.energy_j(), "energy_kind": usage.energy_kind(), "smact_mean": usage.smact_mean(),
    });
    body.to_string()
}

impl Owner {
    /// Whether the hooks of a submission make sense, and are where users may have them.
    pub(in crate::owner) fn check_hooks(&self, spec: &TaskSpec) -> Result<(), Invalid> {
        if spec.notify.len() > MOST_HOOKS {
            return Err(NotifyError::Bounds.into());
        }
        for hook in &spec.notify {
            hook.check()?;
            if let Channel::Webhook(url) = &hook.channel
                && !self.settings.notify.allows(&url.parse::<HookUrl>()?)
            {
                let rules = &self.settings.notify.webhook_allow;
                let allowed =
                    if rules.is_empty() { "no host".to_owned() } else { rules.join(", ") };
                return Err(Invalid::Webhook { url: url.clone(), allowed });
            }
        }
        Ok(())
    }

    /// A task has ended for good.
    pub(in crate::owner) fn notify_end(&mut self, task: TaskId, phase: TaskState) {
        self.notify(task, events_of(phase));
    }

    /// Has hooks told of what happened to a task; `events` are names of the same thing, the most telling first.
    pub(in crate::owner) fn notify(&mut self, task: TaskId, events: &[NotifyEvent]) {
        let Some(live) = self.tasks.get(&task) else { return };
        if live.spec.notify.is_empty() && self.settings.notify.hooks.is_empty() {
            return;
        }
        let (record, spec) = (live.record.clone(), live.spec.clone());
        let of_admins =
            self.settings.notify.hooks.iter().map(|hook| (hook, HookOf::Administrators));
        let of_user = spec.notify.iter().map(|hook| (hook, HookOf::User));
        let picked: Vec<(NotifyEvent, Channel, HookOf)> = of_admins
            .chain(of_user)
            .filter_map(|(hook, of)| Some((hook.picks(events)?, hook.channel.clone(), of)))
            .collect();
        for (event, channel, hook_of) in picked {
            self.post_notice(&record, &spec, event, channel, hook_of);
        }
    }

    fn post_notice(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        event: NotifyEvent,
        channel: Channel,
        hook_of: HookOf,
    ) {
        let at = self.clock.world_now();
        if self.outbox.of_user(record.owner) >= MOST_OF_A_USER {
            let what = format!(
                "no notice of its {} was sent to {channel}: {MOST_OF_A_USER} notices of its user's tasks wait to be sent",
                event.name()
            );
            self.pending.push(Entry::Story(record.id, StoryLine { at, what }));
            return;
        }
        let id = self.outbox.next;
        self.outbox.next += 1;
        let body = body(id, event, at.secs(), record, spec);
        let (task, owner) = (record.id, record.owner);
        let notice = Notice { id, task, owner, event, at, channel, hook_of, tries: 0, body };
        self.pending.push(Entry::Notice(Box::new(notice.clone())));
        self.outbox.waiting.insert(id, notice);
        self.outbox.due.insert((self.clock.instant(), id));
    }

    /// Sends notices that are on the disk and whose time has come, a few at once.
    pub(in crate::owner) fn send_notices(&mut self) {
        self.tell_long_waits();
        // What is not on the disk yet may never have happened.
        if self.disk_full || !self.flush() {
            return;
        }
        while let Some(notice) = self.outbox.take_due(self.clock.instant()) {
            let url = match &notice.channel {
                Channel::Webhook(url) => url.parse::<HookUrl>().ok(),
                _ => None,
            };
            let allowed = url.is_none_or(|url| self.settings.notify.allows(&url));
            match allowed || notice.hook_of == HookOf::Administrators {
                true => self.executor.deliver(&notice, &self.settings.notify.sendmail),
                // The administrators may have changed their mind since it was submitted.
                false => {
                    let why = "the administrators do not allow that address".to_owned();
                    self.notice_sent(notice.id, Err(DeliveryError::Never(why)));
                }
            }
        }
        self.flush();
    }

    /// A notice was told, or was not.
    pub(in crate::owner) fn notice_sent(&mut self, id: u64, sent: Result<(), DeliveryError>) {
        self.outbox.sending.remove(&id);
        let Some(notice) = self.outbox.waiting.get_mut(&id) else { return };
        notice.tries += 1;
        let (event, channel) = (notice.event.name(), notice.channel.clone());
        let what = match sent {
            Ok(()) => format!("{channel} was told of its {event} (notice {id})"),
            Err(DeliveryError::Later(_)) if notice.tries < MOST_TRIES => {
                let pause = FIRST_PAUSE * 4u32.pow(notice.tries.saturating_sub(1));
                self.outbox.due.insert((self.clock.instant() + pause, id));
                self.pending.push(Entry::Notice(Box::new(notice.clone())));
                return;
            }
            Err(error) => {
                let tries = notice.tries;
                tracing::warn!(
                    task = notice.task.0,
                    notice = id,
                    "{channel} was not told: {error}"
                );
                format!(
                    "{channel} could not be told of its {event} (notice {id}, try {tries}): {error}"
                )
            }
        };
        let task = notice.task;
        self.outbox.waiting.remove(&id);
        self.pending.push(Entry::NoticeDone(id));
        self.pending.push(Entry::Story(task, StoryLine { at: self.clock.world_now(), what }));
    }

    /// Has a waiting task looked at when its wait is long, if a hook wants to know.
    pub(in crate::owner) fn mind_long_wait(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get(&task) else { return };
        if live.record.long_wait_told || live.record.first_started.is_some() {
            return;
        }
        let (admins, usual) = (&self.settings.notify.hooks, self.settings.notify.long_wait);
        let waits = |hook: &&Notify| hook.events.contains(&NotifyEvent::Wait);
        let hooks = admins.iter().chain(&live.spec.notify).filter(waits);
        let Some(long) = hooks.map(|hook| hook.long_wait.unwrap_or(usual)).min() else { return };
        let waited = self.clock.world_now().0.saturating_sub(live.record.submitted.0);
        let left = self.clock.world(long).saturating_sub(Duration::from_millis(waited));
        self.outbox.long_waits.no_later_than(self.clock.instant() + left, task, 0);
    }

    /// Tells of tasks that have waited for long. One that is held waits because a user wants it to.
    fn tell_long_waits(&mut self) {
        for (task, _) in self.outbox.long_waits.due(self.clock.instant()) {
            let usual = self.clock.world(self.settings.notify.long_wait);
            let Some(live) = self.tasks.get_mut(&task) else { continue };
            let Live { record, .. } = live;
            if record.phase != TaskState::Pending || record.first_started.is_some() {
                continue;
            }
            if record.held {
                self.outbox.long_waits.no_later_than(self.clock.instant() + usual, task, 0);
                continue;
            }
            record.long_wait_told = true;
            let waited = self.clock.world_now().0.saturating_sub(record.submitted.0);
            let waited = coloc_model::Millis((waited as f64 * self.clock.scale()) as u64);
            self.changed(task, Some(format!("has waited for {waited}")));
            self.notify(task, &[NotifyEvent::Wait]);
        }
    }
}
