//! DCGM's profiling metrics, from `dcgmi dmon` or from a dcgm-exporter.
//!
//! Fields are known by number: DCGM 4.6 renamed them, and their numbers stay.

mod dmon;
mod exporter;
mod feed;

pub use dmon::{DmonParser, SHORTEST_PERIOD, dmon_feed};
pub use exporter::{Endpoint, EndpointError, exporter_feed, parse_exposition};
pub use feed::{Entity, Feed, FeedStatus, Measured};

use super::Reading;
use coloc_model::Fraction;

/// Values from here on mean "blank" in a 64-bit float of DCGM.
const BLANK_FLOAT: f64 = 140_737_488_355_328.0;
/// Values from here on mean "blank" in a 64-bit integer of DCGM.
const BLANK_INTEGER: f64 = 9_223_372_036_854_775_792.0;

/// A profiling metric that coloc uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// 1001: the graphics or compute engine was busy.
    GraphicsActive,
    /// 1002: SM activity.
    SmActive,
    /// 1003: SM occupancy.
    SmOccupancy,
    /// 1004: the tensor pipe was busy.
    TensorActive,
    /// 1005: the memory interface was busy.
    DramActive,
}

impl Field {
    /// The fields in the order in which they are asked for.
    pub const ALL: [Field; 5] = [
        Field::GraphicsActive,
        Field::SmActive,
        Field::SmOccupancy,
        Field::TensorActive,
        Field::DramActive,
    ];

    /// DCGM's number.
    pub const fn number(self) -> u16 {
        match self {
            Field::GraphicsActive => 1001,
            Field::SmActive => 1002,
            Field::SmOccupancy => 1003,
            Field::TensorActive => 1004,
            Field::DramActive => 1005,
        }
    }

    /// The column's head in `dcgmi dmon`.
    const fn column(self) -> &'static str {
        match self {
            Field::GraphicsActive => "GRACT",
            Field::SmActive => "SMACT",
            Field::SmOccupancy => "SMOCC",
            Field::TensorActive => "TENSO",
            Field::DramActive => "DRAMA",
        }
    }

    /// What its names have in common, before and after DCGM 4.6.
    const fn stem(self) -> &'static str {
        match self {
            Field::GraphicsActive => "DCGM_FI_PROF_GR_ENGINE_",
            Field::SmActive => "DCGM_FI_PROF_SM_",
            Field::SmOccupancy => "DCGM_FI_PROF_SM_OCCUPANCY",
            Field::TensorActive => "DCGM_FI_PROF_PIPE_TENSOR_",
            Field::DramActive => "DCGM_FI_PROF_DRAM_",
        }
    }

    fn by_column(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.column() == name)
    }

    fn by_metric(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| match name.strip_prefix(field.stem()) {
            Some(rest) if *field == Field::SmOccupancy => {
                matches!(rest, "" | "_RATIO" | "_UTIL_RATIO")
            }
            Some(rest) => matches!(rest, "ACTIVE" | "UTIL_RATIO"),
            None => false,
        })
    }
}

impl Reading {
    /// Takes a field's value, unless it is blank or no ratio.
    fn set(&mut self, field: Field, value: f64) {
        let blank = value >= BLANK_FLOAT || value >= BLANK_INTEGER;
        // Counters overshoot a little; anything far outside is not a ratio.
        if blank || !(-0.01..=1.05).contains(&value) {
            return;
        }
        *self.field(field) = Some(Fraction::saturating(value));
    }

    /// The same where a source tells a value twice: an idle part of a device must not hide the one that works.
    fn set_larger(&mut self, field: Field, value: f64) {
        if self.field(field).is_none_or(|before| value >= before.get()) {
            self.set(field, value);
        }
    }

    fn field(&mut self, field: Field) -> &mut Option<Fraction> {
        match field {
            Field::GraphicsActive => &mut self.gpu,
            Field::SmActive => &mut self.sm,
            Field::SmOccupancy => &mut self.occupancy,
            Field::TensorActive => &mut self.tensor,
            Field::DramActive => &mut self.dram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_old_and_new_names() {
        for (name, number) in [
            ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1001),
            ("DCGM_FI_PROF_SM_ACTIVE", 1002),
            ("DCGM_FI_PROF_SM_UTIL_RATIO", 1002),
            ("DCGM_FI_PROF_SM_OCCUPANCY", 1003),
            ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1004),
            ("DCGM_FI_PROF_DRAM_ACTIVE", 1005),
            ("DCGM_FI_PROF_DRAM_UTIL_RATIO", 1005),
        ] {
            assert_eq!(Field::by_metric(name).map(Field::number), Some(number), "{name}");
        }
        for name in ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", "", "SMACT"] {
            assert_eq!(Field::by_metric(name), None, "{name}");
        }
    }

    #[test]
    fn blanks_and_nonsense_are_not_readings() {
        let mut reading = Reading::default();
        for value in [140_737_488_355_328.0, 9.223_372_036_854_776e18, f64::NAN, -3.0, 57.0] {
            reading.set(Field::SmActive, value);
        }
        assert!(reading.is_empty());
        reading.set(Field::SmActive, 1.002);
        assert_eq!(reading.sm, Some(Fraction::ONE));
    }
}
