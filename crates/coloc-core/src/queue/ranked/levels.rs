//! Moving between queues: demotion by service, promotion of the starving, and when either is next due.

use super::class::Class;
use super::seat::{Group, Tie};
use super::{Ranked, Standing};
use crate::policy::{Policy, Queue};
use crate::scheduler::World;
use crate::service::{GpuTime, Letter};
use crate::tasks::Record;
use coloc_model::{Millis, TaskId, Time};

const fn uses_service(queue: Queue) -> bool {
    matches!(queue, Queue::Las2d | Queue::Gittins2d)
}

/// STARVELIMIT = PROMOTEKNOB x time executed: when a waiting task below the first queue reaches it.
pub(super) fn promotion(policy: &Policy, record: &Record) -> Option<Time> {
    let knob = policy.service.promote.filter(|_| uses_service(policy.queue))?;
    let (standing, service) = (&record.standing, &policy.service);
    let level = match service.letter {
        Letter::Paper => service.thresholds.level(GpuTime::of(standing.ran, record.task.gpus)),
        Letter::Simulator => standing.level,
    };
    if level == 0 {
        return None;
    }
    let limit = match service.letter {
        Letter::Paper => Millis((knob * standing.ran.0 as f64) as u64),
        // In whole seconds.
        Letter::Simulator => Millis::from_secs((knob * (standing.ran.0 / 1000) as f64) as u64),
    };
    Some(standing.since + Millis(limit.0.saturating_sub(standing.waited.0)))
}

impl World {
    /// Those who waited too long start again at the top, behind those who arrived.
    pub(super) fn promote_the_starving(&mut self, now: Time) {
        while let Some(&(at, task)) = self.ranked.promotions.first()
            && at <= now
        {
            self.reseat(task, |world, record| {
                record.standing.promoted(now);
                let rank = world.ranked.rank_of(now, &world.policy, record);
                record.standing.seat = (rank, world.ranked.tail(task.0));
            });
        }
    }

    /// The published simulator's demotion: one queue an event, to the tail. By the paper's rules the
    /// queue follows from what was attained.
    pub(super) fn demote(&mut self, now: Time) {
        let service = self.policy.service;
        if service.letter == Letter::Paper || !uses_service(self.policy.queue) {
            return;
        }
        for index in 0..self.ranked.running.len() {
            let tail = self.ranked.tail(self.ranked.running[index].task.0);
            let Ranked { running, books, .. } = &mut self.ranked;
            let holder = &running[index];
            let standing = books.standing_mut(holder);
            let attained = standing.attained(now, true, holder.gpus);
            if service.thresholds.limit(standing.level).is_some_and(|limit| attained >= limit) {
                standing.level += 1;
                standing.seat.1 = tail;
                if let Some(record) = self.tasks.get_mut(holder.task) {
                    record.standing = *standing;
                }
            }
        }
    }

    /// After a change of history every task has a new index.
    pub(crate) fn reseat_all(&mut self, now: Time) {
        self.ranked.books.forget_stages();
        for class in 0..self.ranked.classes.len() {
            let fresh = Class::new(self.ranked.classes[class].gang);
            let before = std::mem::replace(&mut self.ranked.classes[class], fresh);
            for ((_, tie), task) in before.iter() {
                let rank = self.ranked.rank_of(now, &self.policy, self.tasks.live(task));
                if let Some(record) = self.tasks.get_mut(task) {
                    record.standing.seat = (rank, tie);
                }
                self.ranked.classes[class].insert((rank, tie), task);
            }
        }
    }

    fn reseat(&mut self, task: TaskId, change: impl FnOnce(&World, &mut Record)) {
        let mut record = self.tasks.live(task).clone();
        self.ranked.remove(&self.policy, &record);
        change(self, &mut record);
        self.ranked.insert(&self.policy, &record);
        self.tasks.insert(record);
    }

    /// When a rank changes next although nothing happens.
    pub(super) fn next_change(&self, now: Time, crossing: Option<Time>) -> Option<Time> {
        let service = &self.policy.service;
        let contended = self.ranked.classes.iter().any(|class| !class.is_empty());
        let quantum = service.quantum.filter(|_| contended).map(|quantum| now + quantum);
        let promotion = match service.letter {
            Letter::Paper => self.ranked.promotions.first(),
            // Whoever is overdue waits for the next event.
            Letter::Simulator => {
                self.ranked.promotions.range((now + Millis(1), TaskId(0))..).next()
            }
        };
        let promotion = promotion.map(|&(at, _)| at);
        // Where nobody waits, the paper's queues need no attention.
        let crossing = crossing.filter(|_| contended || service.letter == Letter::Simulator);
        quantum.into_iter().chain(promotion).chain(crossing).min()
    }

    /// When a running task changes queue.
    pub(super) fn crossing(
        policy: &Policy,
        now: Time,
        gpus: u32,
        standing: &Standing,
    ) -> Option<Time> {
        if !uses_service(policy.queue) {
            return None;
        }
        let service = &policy.service;
        let ran = standing.ran(now, true);
        match service.letter {
            Letter::Paper => {
                let attained = GpuTime::of(ran, gpus);
                let limit = service.thresholds.limit(service.thresholds.level(attained))?;
                Some(now + GpuTime(limit.0 - attained.0).on(gpus))
            }
            // It subtracts time from service, in whole seconds: late, unless the task is new.
            Letter::Simulator => {
                let limit = service.thresholds.limit(standing.level)?;
                let left = limit.0.saturating_sub(ran.0) / 1000;
                Some(now + Millis::from_secs(left / u64::from(gpus))).filter(|&at| at > now)
            }
        }
    }
}

impl Ranked {
    /// Behind everybody in a queue.
    fn tail(&self, index: u32) -> Tie {
        Tie { epoch: self.epoch, group: Group::Moved, index }
    }
}
