//! GPU instance profiles as drivers number them.

use coloc_model::mig::{MigTable, Profile};
use coloc_model::{Bytes, GpuModel};

/// A kind of GPU instance.
#[derive(Clone, Copy, Debug)]
pub struct InstanceProfile {
    /// NVML's enumeration value, which asks for information.
    pub enumeration: u32,
    /// The board's own id, which creates.
    pub id: u32,
    /// Comes with the board's media engines.
    pub media: bool,
    shape: &'static Profile,
}

impl InstanceProfile {
    /// NVIDIA's name without the leading `MIG`.
    pub fn name(&self) -> String {
        format!("{}{}", self.shape.name, if self.media { "+me" } else { "" })
    }

    /// The name of a MIG device with so many of its compute slices: `MIG 1g.5gb`, `MIG 1c.3g.20gb`.
    pub fn device_name(&self, slices: u32) -> String {
        match slices == u32::from(self.compute()) {
            true => format!("MIG {}", self.name()),
            false => format!("MIG {slices}c.{}", self.name()),
        }
    }

    /// Compute slices.
    pub fn compute(&self) -> u8 {
        self.shape.compute
    }

    /// Memory slices.
    pub fn span(&self) -> u8 {
        self.shape.span
    }

    /// Memory of an instance.
    pub fn memory(&self) -> Bytes {
        self.shape.memory()
    }

    /// Where an instance may start.
    pub fn starts(&self) -> &'static [u8] {
        self.shape.starts
    }

    /// How many fit on an empty board.
    pub fn most(&self) -> u32 {
        if self.media { 1 } else { self.shape.starts.len() as u32 }
    }
}

/// NVML's enumeration value of a shape; compute instances use the same by their slices.
pub fn enumeration(compute: u8, span: u8, media: bool) -> u32 {
    match (compute, span, media) {
        (1, 1, true) => 7,
        (1, 2, _) => 9,
        (1, ..) => 0,
        (2, ..) => 1,
        (3, ..) => 2,
        (4, ..) => 3,
        _ => 4,
    }
}

/// Ids are board specific: those of seven-slice boards stand in NVIDIA's MIG guide, as do an A30's.
fn id(table: &MigTable, shape: &Profile, media: bool) -> u32 {
    match (table.compute_slices, shape.compute, shape.span, media) {
        (4, 1, _, false) => 14,
        (4, 1, _, true) => 21,
        (4, 2, ..) => 5,
        (_, 1, 1, false) => 19,
        (_, 1, 1, true) => 20,
        (_, 1, ..) => 15,
        (_, 2, ..) => 14,
        (_, 3, ..) => 9,
        (7, 4, ..) => 5,
        _ => 0,
    }
}

/// Every profile of a board, smallest first; none for boards without MIG.
pub fn profiles(model: GpuModel) -> Vec<InstanceProfile> {
    let Some(table) = model.mig() else { return Vec::new() };
    let mut profiles = Vec::new();
    for shape in table.profiles {
        for media in [false, true] {
            if media && (shape.compute, shape.span) != (1, 1) {
                continue;
            }
            let enumeration = enumeration(shape.compute, shape.span, media);
            profiles.push(InstanceProfile {
                enumeration,
                id: id(table, shape, media),
                media,
                shape,
            });
        }
    }
    profiles
}

/// The slices that a run of memory slices covers.
pub(crate) fn mask(start: u8, span: u8) -> u16 {
    (1u16.checked_shl(span.into()).unwrap_or(0).wrapping_sub(1))
        .checked_shl(start.into())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_enumerations_are_unique_on_each_board() {
        for name in ["A100-40GB", "A100-80GB", "H100-80GB", "H200-141GB", "A30-24GB"] {
            let profiles = profiles(name.parse().expect("known"));
            for key in [|p: &InstanceProfile| p.id, |p: &InstanceProfile| p.enumeration] {
                let mut keys: Vec<u32> = profiles.iter().map(key).collect();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), profiles.len(), "{name}");
            }
        }
    }

    #[test]
    fn an_a100_has_the_documented_ids() {
        let ids: Vec<_> =
            profiles(GpuModel::A100_40GB).iter().map(|p| (p.name(), p.id, p.most())).collect();
        let expected = [
            ("1g.5gb", 19, 7),
            ("1g.5gb+me", 20, 1),
            ("1g.10gb", 15, 4),
            ("2g.10gb", 14, 3),
            ("3g.20gb", 9, 2),
            ("4g.20gb", 5, 1),
            ("7g.40gb", 0, 1),
        ];
        assert_eq!(ids, expected.map(|(name, id, most)| (name.to_owned(), id, most)));
    }
}
