//! Numbers of GPUs over a restart.

use crate::record::Record;
use coloc_model::{GpuId, Placement, Slot};

/// GPUs have numbers in the order in which they answered at a start, and one may be away at the next. A task whose GPU is has no
/// placement any more.
pub(crate) fn renumber(record: &mut Record, before: &[String], now: &[String]) {
    let Some(placement) = record.placement.take() else { return };
    if before.is_empty() {
        record.placement = Some(placement);
        return;
    }
    let renumbered = |slot: &Slot| {
        let uuid = before.get(slot.gpu.index())?;
        let gpu = now.iter().position(|known| known == uuid).map(GpuId::from)?;
        Some(Slot { gpu, ..*slot })
    };
    let slots: Option<Vec<Slot>> = placement.slots.iter().map(renumbered).collect();
    record.placement = slots.map(|slots| Placement { slots: slots.into(), ..placement });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{SpecId, Uid};
    use coloc_api::moment::Moment;
    use coloc_model::{Share, TaskId};

    #[test]
    fn a_placement_follows_its_gpus_and_goes_with_them() {
        let after = |gpus: &[u32], before: &[&str], now: &[&str]| {
            let names =
                |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            let mut record = Record::new(TaskId(1), SpecId(1), Uid(0), Moment(0));
            let slots: Vec<Slot> =
                gpus.iter().map(|&gpu| Slot { gpu: GpuId(gpu), instance: None }).collect();
            record.placement = Some(Placement { slots: slots.into(), share: Share::Mps });
            renumber(&mut record, &names(before), &names(now));
            record.placement.map(|placement| placement.gpus().map(|gpu| gpu.0).collect::<Vec<_>>())
        };
        assert_eq!(after(&[1], &["a", "b"], &["a", "b"]), Some(vec![1]));
        assert_eq!(after(&[1], &["a", "b"], &["b"]), Some(vec![0]));
        assert_eq!(after(&[0, 1], &["a", "b"], &["b"]), None, "one of them is gone");
        assert_eq!(after(&[1], &[], &["b"]), Some(vec![1]), "an older journal does not say");
    }
}
