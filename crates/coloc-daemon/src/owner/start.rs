//! An owner at its start.

use super::{
    Eligibility, Owner, Parts, commands, lifecycle, monitor, telling, today, user_usage, waiting,
};
use crate::hardware::Sighting;
use crate::journal::JournalError;
use crate::metrics::counters::Counters;
use coloc_model::Time;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

impl Owner {
    /// An owner that has picked up where the last one left off.
    #[expect(clippy::too_many_lines, reason = "a line for each field")]
    pub fn new(parts: Parts, saved: crate::journal::Saved) -> Result<Self, JournalError> {
        let mut owner = Owner {
            scheduler: parts.scheduler,
            clock: parts.clock,
            journal: parts.journal,
            executor: parts.executor,
            gpu_names: parts.gpu_names,
            tasks: BTreeMap::new(),
            on_gpus: BTreeSet::new(),
            eligibility: Eligibility::default(),
            names: parts.names,
            fleet: parts.fleet,
            settings: parts.settings,
            account_table: parts.tables.accounts,
            pool_table: parts.tables.pools,
            user_usage: user_usage::UserUsage::of(saved.kept),
            shared_texts: saved.shared_texts,
            updated: None,
            next_task: saved.next_task,
            next_spec: saved.next_spec,
            bulk: None,
            bulk_queue: commands::bulk::BulkQueue::default(),
            more_to_look_at: false,
            to_stop: Vec::new(),
            to_signal: Vec::new(),
            to_limit: Vec::new(),
            hook_failures: lifecycle::hooks::HookFailures::default(),
            overdue: lifecycle::deadlines::Deadlines::default(),
            unclear: lifecycle::deadlines::Deadlines::default(),
            pause: None,
            launches: 0,
            faults: FxHashMap::default(),
            deferred: Vec::new(),
            to_launch: VecDeque::new(),
            for_sharing: Vec::new(),
            wake_at: Time::NEVER,
            pending: Vec::new(),
            asked_by: None,
            reserve: parts.reserve,
            intent_file: parts.intent_file,
            disk_full: false,
            trouble: None,
            draining: saved.draining,
            retention: parts.retention,
            roots_changed: true,
            last_seen: Sighting::default(),
            bookkeeping: monitor::usage::Bookkeeping::begin(parts.clock.instant()),
            outbox: lifecycle::notices::Outbox::of(saved.notices, parts.clock.instant()),
            heard_at: parts.clock.instant(),
            seen_at: monitor::departures::LastSeen::default(),
            away: FxHashMap::default(),
            service: monitor::drained_gpus::Service::default(),
            foreign_seen: monitor::foreign::ForeignSeen::default(),
            idle: monitor::idle::IdleSince::default(),
            memory_watchdog: monitor::memory_watchdog::MemoryWatchdog::default(),
            signs: monitor::progress::Signs::default(),
            history: coloc_estimate::history::History::default(),
            news: parts.news,
            untold: telling::Untold::default(),
            series: parts.series,
            attempt_peaks: FxHashMap::default(),
            waiting: waiting::Waiting::default(),
            today: today::Today::default(),
            about: parts.about,
            started: parts.clock.world_now(),
            counters: Counters::default(),
            stop: false,
        };
        let _ = owner.retention.send(owner.settings.retention);
        owner.remember(saved.lessons);
        owner.recall_gpus(saved.gpus);
        owner.read_history().and_then(|()| owner.restore(saved.live))?;
        owner.untold = telling::Untold::default();
        owner.scheduler.keep_decisions();
        Ok(owner)
    }
}
