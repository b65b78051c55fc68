//! GPUs that take only the tasks of some users, because an administrator wants it so. Tasks on them go on.
//!
//! A reservation is on the disk before the scheduler decides anything by it. It ends at its time, or when an administrator
//! returns the GPU.

use crate::administration::who::{self, Who};
use crate::journal::Reserved;
use crate::owner::commands::invalid::Invalid;
use crate::owner::{Caller, GpusServed, Owner, Refused};
use crate::record::Uid;
use coloc_api::moment::Moment;
use coloc_api::request::{GpuReservation, MOST_RESERVED_FOR};
use coloc_api::view::GpuView;
use coloc_core::{Effect, Event};
use coloc_model::{GpuId, Time, UserId};
use std::sync::Arc;

impl Owner {
    /// An administrator wants GPUs to take only the tasks of some users, or of all again.
    pub(in crate::owner) fn reserve_gpus(
        &mut self,
        now: Time,
        caller: Caller,
        request: &GpuReservation,
        effects: &mut Vec<Effect>,
    ) -> Result<GpusServed, Refused> {
        if !caller.admin {
            return Err(Refused::NotAdmin);
        }
        let gpus = self.named_gpus(&request.gpus)?;
        let reason = self.checked_reason(request.reason.as_deref())?;
        let users = checked_users(&request.reserved_for)?;
        let until = self.checked_until(request.until_s)?;
        let mut notes = Vec::new();
        let had_some = self.has_reserved_gpus();
        for &gpu in &gpus {
            let (users, reason, by) = (users.clone(), reason.clone(), caller.uid);
            let reserved = (!users.is_empty()).then_some(Reserved { users, until, reason, by });
            if reserved.is_none() && self.reservation(gpu).is_none() {
                notes.push(format!("GPU {gpu} was not reserved"));
                continue;
            }
            if let Some(before) = self.reservation(gpu).filter(|_| reserved.is_some()) {
                let by = crate::users::name(before.by);
                notes.push(format!("GPU {gpu} was {}, by {by}: that is over now", told(before)));
            }
            self.record_gpu(gpu, |record| record.reserved.clone_from(&reserved));
            let by = crate::users::name(caller.uid);
            match &reserved {
                Some(reserved) => tracing::info!("GPU {gpu} is {}, by {by}", told(reserved)),
                None => tracing::info!("GPU {gpu} takes the tasks of all users again, by {by}"),
            }
        }
        match had_some || !self.has_reserved_gpus() {
            true => gpus.iter().for_each(|&gpu| self.tell_of_reservation(now, gpu, effects)),
            false => {
                // Until now users were not told apart: tasks of two that ask the same were one to the scheduler.
                let new = self.another_scheduler();
                self.replace_scheduler(now, new, effects);
                gpus.iter().for_each(|&gpu| self.tell_of_reservation(now, gpu, effects));
            }
        }
        self.wake_for_reservations();
        let views = self.gpu_views(now).into_iter();
        let gpus = views.filter(|view| gpus.contains(&GpuId(view.index))).collect();
        Ok(GpusServed { gpus, notes })
    }

    fn checked_until(&self, until_s: Option<f64>) -> Result<Option<Moment>, Invalid> {
        let Some(until) = until_s else { return Ok(None) };
        let until = Moment((until * 1000.0) as u64);
        match until > self.clock.world_now() && until.0 <= crate::bounds::LAST_BEGIN {
            true => Ok(Some(until)),
            false => Err(Invalid::ReservationPassed),
        }
    }

    /// Tells the scheduler which users a GPU is kept for.
    pub(in crate::owner) fn tell_of_reservation(
        &mut self,
        now: Time,
        gpu: GpuId,
        effects: &mut Vec<Effect>,
    ) {
        let users = self.reservation(gpu).map(|reserved| {
            let those = self.names.known().filter(|(_, uid)| who::includes(&reserved.users, *uid));
            those.map(|(user, _)| user).collect::<Arc<[UserId]>>()
        });
        self.scheduler.note(now, Event::GpuKept { gpu, users }, effects);
    }

    /// A user is seen for the first time: GPUs may be reserved for them.
    pub(in crate::owner) fn keep_reserved_gpus_for(&mut self, _user: UserId, uid: Uid) {
        let theirs: Vec<GpuId> = self
            .reservations()
            .filter(|(_, reserved)| who::includes(&reserved.users, uid))
            .map(|(gpu, _)| gpu)
            .collect();
        // None of their tasks is there yet, so there are no effects.
        theirs.into_iter().for_each(|gpu| {
            self.tell_of_reservation(self.clock.now(), gpu, &mut Vec::new());
        });
    }

    /// Returns GPUs whose time has come.
    pub(in crate::owner) fn end_reservations(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let world = self.clock.world_now();
        let over = |reserved: &Reserved| reserved.until.is_some_and(|until| until <= world);
        let due: Vec<GpuId> =
            self.reservations().filter(|(_, r)| over(r)).map(|(gpu, _)| gpu).collect();
        for gpu in due {
            tracing::info!("GPU {gpu} takes the tasks of all users again: its reservation is over");
            self.record_gpu(gpu, |record| record.reserved = None);
            self.tell_of_reservation(now, gpu, effects);
        }
        self.wake_for_reservations();
    }

    /// Has the owner look when the next reservation ends.
    fn wake_for_reservations(&mut self) {
        let next = self.reservations().filter_map(|(_, reserved)| reserved.until).min();
        if let Some(until) = next {
            self.wake_at = self.wake_at.min(self.clock.time(until));
        }
    }

    /// What is shown of a GPU's reservation.
    pub(in crate::owner) fn show_reservation(&self, gpu: GpuId, view: &mut GpuView) {
        if let Some(reserved) = self.reservation(gpu) {
            view.reserved_for = reserved.users.iter().map(Who::to_string).collect();
            view.reserved_until_s = reserved.until.map(Moment::secs);
            view.reserve_reason.clone_from(&reserved.reason);
            view.reserved_by = Some(crate::users::name(reserved.by));
        }
    }

    /// Which users a GPU is reserved for, for people.
    pub(in crate::owner) fn told_reservation(&self, gpu: GpuId) -> Option<String> {
        self.reservation(gpu).map(told)
    }
}

fn told(reserved: &Reserved) -> String {
    let reason = reserved.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("reserved for {}{reason}", who::listed(&reserved.users))
}

fn checked_users(names: &[String]) -> Result<Vec<Who>, Invalid> {
    if names.len() > MOST_RESERVED_FOR {
        return Err(Invalid::ReservedFor { most: MOST_RESERVED_FOR });
    }
    let known = |name: &String| {
        let who: Who =
            name.parse().map_err(|error: who::NoName| Invalid::Who(error.to_string()))?;
        who.check().map_err(|error| Invalid::Who(error.to_string()))?;
        Ok(who)
    };
    names.iter().map(known).collect()
}
