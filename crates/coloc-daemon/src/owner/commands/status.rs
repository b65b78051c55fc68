//! How the daemon is, for people and programs.

use crate::owner::{Caller, Owner};
use coloc_api::view::{FaultView, LimitsView, PolicyView, StatusNews, StatusView};
use coloc_core::Policy;
use coloc_core::policy::Gate;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a daemon is told of itself when it starts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct About {
    /// The machine's name.
    pub host: String,
    /// At least one GPU is made of software.
    pub emulated: bool,
}

/// Settings that make another policy of a preset.
const PARTS: [&str; 3] = ["queue", "place", "share"];

/// The name of a policy's part, as flags have it.
fn name(part: impl Serialize) -> String {
    let text = serde_json::to_value(part).ok();
    text.as_ref().and_then(|text| text.as_str()).unwrap_or_default().to_owned()
}

fn limits(policy: &Policy) -> LimitsView {
    match policy.gate {
        Gate::Open | Gate::Expected { .. } => LimitsView::default(),
        Gate::TumblingMean { limit, .. } => {
            LimitsView { smact: Some(limit.get()), ..LimitsView::default() }
        }
        Gate::Risk { sm, occupancy, dram } => LimitsView {
            smact: Some(sm.get()),
            smocc: Some(occupancy.get()),
            drama: Some(dram.get()),
        },
    }
}

impl Owner {
    pub(in crate::owner) fn status(&self, caller: Caller) -> StatusView {
        let (containment, processes) = self.executor.containment();
        let news = self.status_news();
        StatusView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tasks: news.tasks,
            lessons: self.scheduler.beliefs().lessons(),
            disk_full: news.disk_full,
            draining: news.draining,
            pid: std::process::id(),
            containment,
            processes,
            trouble: news.trouble,
            host: self.about.host.clone(),
            emulated: self.about.emulated,
            time_scale: self.clock.scale(),
            now_s: news.now_s,
            started_s: self.started.secs(),
            user: crate::users::name(caller.uid),
            admin: caller.admin,
            scope: Default::default(),
            policy: self.policy_view(),
            counts: news.counts,
            ooms_today: news.ooms_today,
            recovered_today: news.recovered_today,
            estimate: self.today.quality(),
            energy_today_j: news.energy_today_j,
            epoch: self.news.epoch().to_owned(),
            seq: self.news.seq(),
            limits: limits(self.scheduler.policy()),
            faults: news.faults,
        }
    }

    fn policy_view(&self) -> PolicyView {
        let policy = self.scheduler.policy();
        let chosen = |key: &str| {
            let setting = self.settings.chosen.iter().find(|setting| setting.key == key);
            setting.and_then(|setting| setting.values.last().cloned())
        };
        PolicyView {
            preset: match PARTS.iter().any(|part| chosen(part).is_some()) {
                true => None,
                false => chosen("preset").or_else(|| Some("coloc".to_owned())),
            },
            queue: name(policy.queue),
            place: name(policy.place),
            share: policy.share.to_string(),
            estimator: chosen("estimator"),
        }
    }

    /// What changes of it.
    pub(in crate::owner) fn status_news(&self) -> StatusNews {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for live in self.tasks.values() {
            match counts.get_mut(live.record.phase.name()) {
                Some(count) => *count += 1,
                None => drop(counts.insert(live.record.phase.name().to_owned(), 1)),
            }
        }
        counts.extend(self.today.ended.iter().map(|(state, n)| ((*state).to_owned(), *n)));
        StatusNews {
            now_s: self.clock.world_now().secs(),
            tasks: self.tasks.len(),
            counts,
            draining: self.draining,
            disk_full: self.disk_full,
            trouble: self.machine_trouble(),
            ooms_today: self.today.ooms,
            recovered_today: self.today.recovered,
            energy_today_j: self.today.energy(),
            faults: self.faults_now(),
        }
    }

    fn faults_now(&self) -> Vec<FaultView> {
        let mut faults = Vec::new();
        let mut add = |word: &str, text: String| {
            faults.push(FaultView { word: word.to_owned(), text });
        };
        if self.disk_full {
            let why = self.why_unwritten();
            add(why.code(), why.to_string());
        }
        if self.draining {
            add("draining", "the daemon is draining: nothing new is launched".to_owned());
        }
        if let Some(trouble) = self.machine_trouble() {
            add("machine", trouble);
        }
        for gpu in self.fleet.ids() {
            if self.away.contains_key(&gpu) {
                add("gpu_lost", format!("GPU {gpu} cannot be used: it is lost"));
            } else if let Some(reason) = self.drain_reason(gpu) {
                add("gpu_drained", format!("GPU {gpu} takes nothing new: {reason}"));
            }
        }
        self.foreign_notices().into_iter().for_each(|notice| add("foreign", notice));
        self.pool_table.notes(&self.fleet).into_iter().for_each(|note| add("pool", note));
        if self.is_monitor_silent() {
            add("monitor", "the GPUs have not been looked at for a while".to_owned());
        }
        faults
    }
}
