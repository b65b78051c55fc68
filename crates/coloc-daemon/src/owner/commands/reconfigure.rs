//! Another policy while tasks run: a new scheduler takes over what the old one knows, as after a restart, but without one.

use crate::administration::pools::PoolError;
use crate::administration::{PoolTable, admins};
use crate::hardware::{Gpus, can_share};
use crate::journal::{Entry, Setup};
use crate::owner::commands::invalid::Invalid;
use crate::owner::{Names, Owner, Refused};
use crate::quotas::{AccountTable, UnknownAccount};
use crate::settings::Settings;
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{Fleet, Share, TaskId, TaskState, Time};

/// Accounts or pools that cannot be had on this machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SetupError {
    /// Accounts.
    #[error(transparent)]
    Account(#[from] UnknownAccount),
    /// Pools.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// What settings say of users and GPUs, by the numbers that this machine has for them.
#[derive(Clone, PartialEq, Debug)]
pub struct Tables {
    pub(crate) accounts: AccountTable,
    pub(crate) pools: PoolTable,
}

impl Tables {
    /// Looks everything up.
    pub fn of(settings: &Settings, fleet: &Fleet, uuids: &[String]) -> Result<Self, SetupError> {
        let pools = &settings.administration.pools;
        Ok(Tables {
            accounts: settings.quotas.look_up()?,
            pools: PoolTable::of(pools, &settings.policy, fleet, uuids)?,
        })
    }
}

/// A scheduler that knows the machine, the accounts and the pools, but no task yet.
pub(crate) fn scheduler(
    fleet: &Fleet,
    settings: &Settings,
    names: &mut Names,
    tables: &Tables,
) -> Scheduler {
    let scheduler = scheduler_by(fleet, settings, names, &tables.accounts);
    match tables.pools.is_empty() {
        true => scheduler,
        false => scheduler.with_pools(tables.pools.for_core()),
    }
}

fn scheduler_by(
    fleet: &Fleet,
    settings: &Settings,
    names: &mut Names,
    account_table: &AccountTable,
) -> Scheduler {
    let mut accounts = account_table.accounts();
    // Known users need their accounts at once; others get theirs when they come.
    for uid in account_table.named() {
        names.user(uid.0);
    }
    for (user, uid) in names.known() {
        accounts.set_user(user, account_table.account(uid));
    }
    let mut scheduler =
        Scheduler::new(fleet, settings.policy).with_accounts(accounts).with_host(settings.host);
    if let Some(samples) = &settings.history {
        scheduler = scheduler.with_history(samples.clone());
    }
    scheduler
}

impl Owner {
    /// Has other settings from now on. Running tasks stay where they are, waiting ones keep their order of arrival.
    pub(in crate::owner) fn reconfigure(
        &mut self,
        now: Time,
        settings: Settings,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let refused = |problem: &dyn std::fmt::Display| Invalid::Configuration(problem.to_string());
        can_share(&self.fleet, settings.policy.share).map_err(|error| refused(&error))?;
        if !self.settings.schedules_like(&settings) {
            let tables = Tables::of(&settings, &self.fleet, &self.gpu_names);
            let tables = tables.map_err(|error| refused(&error))?;
            let new = scheduler(&self.fleet, &settings, &mut self.names, &tables);
            let setup = self.setup(&settings);
            self.journal.note_setup(&setup).map_err(|error| refused(&error))?;
            self.account_table = tables.accounts;
            self.pool_table = tables.pools;
            self.replace_scheduler(now, new, effects);
        }
        admins::set_group(settings.administration.admin_group.as_deref())
            .map_err(|error| refused(&error))?;
        self.executor.set_grace(settings.grace);
        self.executor.set_hooks(&settings.administration.hooks);
        let _ = self.retention.send(settings.retention);
        self.settings = settings;
        Ok(())
    }

    /// Has GPUs that were not there before, at the end of the fleet. They are on the disk before a task is launched there.
    pub(in crate::owner) fn have_more_gpus(
        &mut self,
        now: Time,
        gpus: Gpus,
        effects: &mut Vec<Effect>,
    ) {
        let before = self.fleet.len();
        self.executor.set_gpus(&gpus);
        self.gpu_names = gpus.names();
        self.fleet = gpus.fleet;
        let setup = self.setup(&self.settings);
        self.pending.push(Entry::Setup(Box::new(setup)));
        let pools = &self.settings.administration.pools;
        match PoolTable::of(pools, &self.settings.policy, &self.fleet, &self.gpu_names) {
            Ok(pools) => self.pool_table = pools,
            Err(error) => tracing::error!("the new GPUs are in no pool: {error}"),
        }
        let new = self.another_scheduler();
        self.replace_scheduler(now, new, effects);
        self.recall_absent_gpus(now, effects);
        for gpu in self.fleet.ids().skip(before) {
            tracing::info!("GPU {gpu} is there now");
            if self.settings.policy.share == Share::Mig && self.fleet.gpu(gpu).model.mig().is_none()
            {
                let why = "it cannot be partitioned, and tasks have MIG instances";
                self.drain_for_fault(now, gpu, why, effects);
            }
        }
    }

    /// How this daemon would be set up by some settings.
    fn setup(&self, settings: &Settings) -> Setup {
        let gpus = self.fleet.gpus().iter().map(|gpu| gpu.model).collect();
        let (time_scale, uuids) = (self.clock.scale(), self.gpu_names.clone());
        Setup { policy: settings.policy, gpus, time_scale, uuids }
    }

    /// A scheduler by the settings in force.
    pub(in crate::owner) fn another_scheduler(&mut self) -> Scheduler {
        let (accounts, pools) = (self.account_table.clone(), self.pool_table.clone());
        scheduler(&self.fleet, &self.settings, &mut self.names, &Tables { accounts, pools })
    }

    /// A new scheduler takes over what the old one knows.
    pub(in crate::owner) fn replace_scheduler(
        &mut self,
        now: Time,
        mut new: Scheduler,
        effects: &mut Vec<Effect>,
    ) {
        if self.has_reserved_gpus() {
            new.tell_users_apart();
        }
        new.remember(now, &self.scheduler);
        self.scheduler = new;
        // It is told of these at the next look, as if they were new.
        self.foreign_seen.tell_again();
        self.last_seen.clients.clear();
        self.last_seen.slices.clear();
        self.introduce(now, effects);
    }

    /// Tells a new scheduler of everything that the old one was told.
    fn introduce(&mut self, now: Time, effects: &mut Vec<Effect>) {
        // What the old one wanted and was not done, the new one may want differently.
        self.deferred.clear();
        let in_core: Vec<TaskId> =
            self.tasks.values().filter(|live| live.in_core).map(|live| live.record.id).collect();
        for task in in_core {
            let Some(core_task) = self.as_core_task(task) else { continue };
            let Some(live) = self.tasks.get(&task) else { continue };
            let record = &live.record;
            let on_gpus = matches!(record.phase, TaskState::Launching | TaskState::Running);
            let stops = matches!(record.phase, TaskState::Preempting) && live.ending.is_some();
            let placement = record.placement.clone().filter(|_| on_gpus || stops);
            let goes = live.ending.is_some();
            let event = match placement {
                Some(placement) => {
                    let started = record.started.map_or(now, |started| self.clock.time(started));
                    Event::Adopted { task: core_task, placement, started, promised: None }
                }
                None => Event::Submitted(core_task),
            };
            self.scheduler.note(now, event, effects);
            if goes {
                // A task that is on the way out has been told so already.
                let mut again = Vec::new();
                self.scheduler.note(now, Event::StopRequested(task), &mut again);
                again.retain(|wish| !matches!(wish, Effect::Stop(_)));
                effects.append(&mut again);
            }
        }
        self.wake_at = now;
    }
}
