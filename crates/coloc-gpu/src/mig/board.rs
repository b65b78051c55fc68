//! A partitioned board: its profiles, where their instances may lie, and which there are.

use crate::device::{DeviceProcess, Uuid};
use coloc_model::Bytes;
use coloc_model::mig::MigTable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A GPU instance's number, given by the driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct GpuInstanceId(pub u32);

/// A compute instance's number within its GPU instance, given by the driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct ComputeInstanceId(pub u32);

/// A run of memory slices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The first slice.
    pub start: u8,
    /// How many.
    pub span: u8,
}

impl Place {
    /// The most slices that a board may have here.
    const MOST: u32 = 16;

    /// A place, unless it is empty or off any board.
    pub fn new(start: u32, span: u32) -> Option<Place> {
        let end = start.checked_add(span)?;
        (span > 0 && end <= Self::MOST).then_some(Place { start: start as u8, span: span as u8 })
    }

    /// One bit a slice.
    pub(super) fn mask(self) -> u16 {
        (((1u32 << self.span) - 1) << self.start) as u16
    }
}

/// What sets a profile apart from others of its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileKind {
    /// Nothing: it may be chosen by size.
    Plain,
    /// It has the media engines, of which there is one set: it is given only to a want that names it.
    Media,
}

/// A size of GPU instance that a board offers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BoardProfile {
    /// The id that creates it; differs from board to board.
    pub id: u32,
    /// NVIDIA's name, such as `3g.20gb`.
    pub name: String,
    /// What sets it apart.
    pub kind: ProfileKind,
    /// Compute slices.
    pub compute: u8,
    /// Memory of the instance.
    pub memory: Bytes,
    /// How many an empty board holds.
    pub most: u32,
    /// Where it may lie.
    pub places: Vec<Place>,
}

impl BoardProfile {
    /// Memory slices that it covers.
    pub fn span(&self) -> u8 {
        self.places.first().map_or(u8::MAX, |place| place.span)
    }

    /// NVIDIA's way to name a profile, for drivers that do not tell.
    pub(crate) fn conventional_name(compute: u8, memory: Bytes, kind: ProfileKind) -> String {
        let media = if kind == ProfileKind::Media { "+me" } else { "" };
        format!("{compute}g.{:.0}gb{media}", memory.gib().ceil())
    }
}

/// A compute instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ComputeInstance {
    /// Its number.
    pub id: ComputeInstanceId,
    /// Compute slices.
    pub slices: u8,
}

/// A GPU instance that is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExistingInstance {
    /// Its number.
    pub id: GpuInstanceId,
    /// The id of its profile.
    pub profile: u32,
    /// Where it lies.
    pub place: Place,
    /// Its compute instances.
    pub computes: Vec<ComputeInstance>,
    /// A process uses it.
    pub busy: bool,
}

/// A device that a process can be given: `CUDA_VISIBLE_DEVICES=MIG-…`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MigDevice {
    /// Its name.
    pub uuid: Uuid,
    /// The GPU instance.
    pub gpu_instance: GpuInstanceId,
    /// The compute instance.
    pub compute_instance: ComputeInstanceId,
    /// Memory of the GPU instance.
    pub memory_total: Option<Bytes>,
    /// Memory in use in the GPU instance.
    pub memory_used: Option<Bytes>,
}

/// A board in MIG mode.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Board {
    /// Sizes that it offers, smallest first.
    pub profiles: Vec<BoardProfile>,
    /// Instances that are there.
    pub instances: Vec<ExistingInstance>,
}

impl Board {
    /// A board as the driver describes it.
    pub fn new(mut profiles: Vec<BoardProfile>, mut instances: Vec<ExistingInstance>) -> Self {
        profiles.retain(|profile| !profile.places.is_empty());
        profiles.sort_by_key(|p| (p.span(), p.compute, p.memory, p.id));
        instances.sort_by_key(|instance| instance.place);
        Board { profiles, instances }
    }

    /// An empty board as its data sheet describes it. Ids are positions in the table: they serve to plan with,
    /// not to create with.
    pub fn from_table(table: &MigTable) -> Self {
        let profile = |(id, profile): (usize, &coloc_model::mig::Profile)| BoardProfile {
            id: id as u32,
            name: profile.name.to_owned(),
            kind: ProfileKind::Plain,
            compute: profile.compute,
            memory: profile.memory(),
            most: profile.starts.len() as u32,
            places: profile
                .starts
                .iter()
                .filter_map(|&start| Place::new(u32::from(start), u32::from(profile.span)))
                .collect(),
        };
        Board::new(table.profiles.iter().enumerate().map(profile).collect(), Vec::new())
    }

    /// Compute slices of the whole board: those of its largest profile.
    pub fn compute_slices(&self) -> u8 {
        self.profiles.iter().map(|profile| profile.compute).max().unwrap_or(0)
    }

    /// Memory slices of the whole board.
    pub fn memory_slices(&self) -> u8 {
        let ends = self.profiles.iter().flat_map(|profile| &profile.places);
        ends.map(|place| place.start + place.span).max().unwrap_or(0)
    }

    /// The profile with that id.
    pub fn profile(&self, id: u32) -> Option<&BoardProfile> {
        self.profiles.iter().find(|profile| profile.id == id)
    }

    /// Marks the instances that processes run in. A process whose instance the driver does not tell makes all
    /// of them busy: it must be in one of them.
    pub fn mark_busy(&mut self, processes: &[DeviceProcess]) {
        for process in processes {
            for instance in &mut self.instances {
                let here = process.gpu_instance.is_none_or(|id| GpuInstanceId(id) == instance.id);
                instance.busy |= here;
            }
        }
    }

    /// Marks the instances at places that tasks count on.
    pub fn mark_kept(&mut self, places: &[Place]) {
        for instance in &mut self.instances {
            instance.busy |= places.contains(&instance.place);
        }
    }
}

impl fmt::Display for Board {
    /// The instances, such as `3g.20gb@4 (busy), 1g.5gb@0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.instances.is_empty() {
            return f.write_str("no instances");
        }
        for (at, instance) in self.instances.iter().enumerate() {
            let name = self.profile(instance.profile).map_or("unknown", |p| p.name.as_str());
            let separator = if at == 0 { "" } else { ", " };
            let busy = if instance.busy { " (busy)" } else { "" };
            write!(f, "{separator}{name}@{}{busy}", instance.place.start)?;
        }
        Ok(())
    }
}
