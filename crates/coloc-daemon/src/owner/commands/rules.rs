//! The rules that refuse a GPU, as clients see them.

use crate::owner::Owner;
use coloc_api::view::RuleView;
use coloc_core::{GpuVerdict, Refusal};
use coloc_model::{Bytes, GpuId};

impl Owner {
    /// The rules by which a GPU refuses a task, with what only the daemon knows of them.
    pub(in crate::owner) fn rules(&self, verdict: &GpuVerdict) -> Vec<RuleView> {
        let rules = verdict.refusals.iter();
        rules.map(|no| RuleView { text: self.told(verdict.gpu, no), ..rule_view(no) }).collect()
    }

    fn told(&self, gpu: GpuId, refusal: &Refusal) -> String {
        match refusal {
            Refusal::Drained => {
                let reason = self.drain_reason(gpu).map(|reason| format!(": {reason}"));
                format!("{refusal}{}", reason.unwrap_or_default())
            }
            Refusal::KeptForOthers => {
                let told = self.told_reservation(gpu);
                told.map_or_else(|| refusal.to_string(), |told| format!("is {told}"))
            }
            Refusal::OtherPool => match self.pool_table.of_gpu(gpu).as_slice() {
                [] => "is in no pool".to_owned(),
                pools => format!("is in pool {}, not in the task's", pools.join(", ")),
            },
            _ => refusal.to_string(),
        }
    }
}

/// A refusal as data.
pub(crate) fn rule_view(refusal: &Refusal) -> RuleView {
    let view = RuleView {
        rule: refusal.rule().to_owned(),
        text: refusal.to_string(),
        ..RuleView::default()
    };
    let amounts = |have: Option<f64>, limit: Option<f64>, short: f64, unit: &str| RuleView {
        have,
        limit,
        short: Some(short),
        unit: Some(unit.to_owned()),
        ..view.clone()
    };
    let bytes = |have: Bytes, need: Bytes| {
        let short = need.saturating_sub(have);
        amounts(Some(have.0 as f64), Some(need.0 as f64), short.0 as f64, "bytes")
    };
    // What has to go before a limit is kept: one more would be one too many.
    let count = |have: f64, limit: f64, unit: &str| {
        amounts(Some(have), Some(limit), (have - limit + 1.0).max(1.0), unit)
    };
    match *refusal {
        Refusal::Reserved { reserved_for } => RuleView { task: Some(reserved_for.0), ..view },
        Refusal::HeldAlone { holder, .. } => RuleView { task: Some(holder.0), ..view },
        Refusal::Foreign { used } => {
            amounts(Some(used.0 as f64), Some(0.0), used.0 as f64, "bytes")
        }
        Refusal::Occupied { tasks } => {
            amounts(Some(tasks as f64), Some(0.0), tasks as f64, "tasks")
        }
        Refusal::Settling { left } => amounts(None, None, left.secs(), "s"),
        Refusal::Crowded { limit } => count(f64::from(limit), f64::from(limit), "tasks"),
        Refusal::MpsClients { clients, limit } => {
            count(f64::from(clients), f64::from(limit), "clients")
        }
        Refusal::Memory { need, available } => bytes(available, need),
        Refusal::NoInstance { need, largest } => bytes(largest, need),
        Refusal::Busy { value, limit, .. } => {
            amounts(Some(value), Some(limit), value - limit, "ratio")
        }
        Refusal::OtherSharing { holder } => RuleView { task: Some(holder.0), ..view },
        Refusal::Away
        | Refusal::Drained
        | Refusal::Kind
        | Refusal::OtherPool
        | Refusal::KeptForOthers
        | Refusal::OtherUser { .. } => view,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_core::Measure;
    use coloc_model::{Millis, TaskId};

    /// The amounts of a refusal, as they go over the wire.
    fn amounts(refusal: Refusal) -> (Option<f64>, Option<f64>, Option<f64>, Option<String>) {
        let view = rule_view(&refusal);
        (view.have, view.limit, view.short, view.unit)
    }

    #[test]
    fn memory_has_what_there_is_what_is_needed_and_what_is_short() {
        let memory = Refusal::Memory { need: Bytes(12), available: Bytes(5) };
        assert_eq!(amounts(memory), (Some(5.0), Some(12.0), Some(7.0), Some("bytes".into())));
    }

    #[test]
    fn a_full_gpu_is_short_of_one_place_and_a_hot_one_of_activity() {
        let crowded = Refusal::Crowded { limit: 4 };
        assert_eq!(amounts(crowded), (Some(4.0), Some(4.0), Some(1.0), Some("tasks".into())));
        let busy = Refusal::Busy { measure: Measure::MeanSm, value: 0.75, limit: 0.5 };
        assert_eq!(amounts(busy), (Some(0.75), Some(0.5), Some(0.25), Some("ratio".into())));
        let settling = Refusal::Settling { left: Millis(1500) };
        assert_eq!(amounts(settling), (None, None, Some(1.5), Some("s".into())));
    }

    #[test]
    fn a_task_in_the_way_is_named() {
        let alone = Refusal::HeldAlone { holder: TaskId(7), until_settled: false };
        let view = rule_view(&alone);
        assert_eq!((view.rule.as_str(), view.task), ("held_alone", Some(7)));
        assert_eq!(view.text, "task 7 has it alone");
    }

    /// The words of the wire are those by which the core's own JSON has them.
    #[test]
    fn rules_have_the_words_of_the_core() {
        let some = [
            Refusal::Away,
            Refusal::Drained,
            Refusal::Kind,
            Refusal::OtherPool,
            Refusal::KeptForOthers,
            Refusal::OtherSharing { holder: TaskId(1) },
            Refusal::Crowded { limit: 1 },
            Refusal::MpsClients { clients: 1, limit: 1 },
            Refusal::Foreign { used: Bytes(1) },
            Refusal::NoInstance { need: Bytes(2), largest: Bytes(1) },
        ];
        for refusal in some {
            let json = serde_json::to_value(refusal).unwrap();
            assert_eq!(json["rule"], refusal.rule());
        }
    }
}
