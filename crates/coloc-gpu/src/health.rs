//! Faults of the hardware: what says that nothing new should be started on a GPU.
//!
//! Some are events ([`Xid`], which [`crate::driver::Xids`] waits for), others are states that every look at a device
//! shows ([`Condition`]).

use serde::{Deserialize, Serialize};
use std::fmt;

/// A critical error by NVIDIA's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Xid(pub u64);

impl Xid {
    /// What it means, if it is the hardware's fault; other errors are the program's, or tell of nothing lasting.
    pub fn hardware_fault(self) -> Option<&'static str> {
        Some(match self.0 {
            48 => "uncorrectable ECC error",
            63 => "row remapping or page retirement recorded",
            64 => "row remapping or page retirement failed",
            79 => "fallen off the bus",
            94 => "contained ECC error",
            95 => "uncontained ECC error",
            _ => return None,
        })
    }

    /// Programs on the GPU fail of it: all of them, or the one that met it.
    pub fn ends_programs(self) -> bool {
        matches!(self.0, 48 | 79 | 94 | 95)
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hardware_fault() {
            Some(what) => write!(f, "XID {} ({what})", self.0),
            None => write!(f, "XID {}", self.0),
        }
    }
}

/// How a device's memory is. `None` and `false` are also what a device says that does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// Uncorrected ECC errors since the driver was loaded or the device reset; `None` without ECC.
    pub ecc_uncorrected: Option<u64>,
    /// A row, or before Ampere a page, waits for a reset to be taken out of use.
    pub remap_pending: bool,
    /// A row could not be taken out of use.
    pub remap_failed: bool,
}

/// A state of a device that keeps new tasks from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Memory errors that were not corrected.
    UncorrectedEcc {
        /// How many since the last reset.
        errors: u64,
    },
    /// Faulty memory is taken out of use by the next reset.
    RemapPending,
    /// Faulty memory could not be taken out of use.
    RemapFailed,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::UncorrectedEcc { errors: 1 } => write!(f, "1 uncorrected ECC error"),
            Fault::UncorrectedEcc { errors } => write!(f, "{errors} uncorrected ECC errors"),
            Fault::RemapPending => {
                write!(f, "a row remap is pending: reset it with `nvidia-smi --gpu-reset -i GPU`")
            }
            Fault::RemapFailed => {
                write!(f, "a row could not be remapped: the board is to be replaced")
            }
        }
    }
}

impl Condition {
    /// What is wrong now.
    pub fn faults(&self) -> impl Iterator<Item = Fault> + use<> {
        let errors = self.ecc_uncorrected.filter(|&errors| errors > 0);
        let ecc = errors.map(|errors| Fault::UncorrectedEcc { errors });
        let pending = self.remap_pending.then_some(Fault::RemapPending);
        let failed = self.remap_failed.then_some(Fault::RemapFailed);
        ecc.into_iter().chain(pending).chain(failed)
    }

    /// What of this is still so in a later condition: counters begin anew with a reset, and rows are replaced by it.
    #[must_use]
    pub fn still(&self, later: &Condition) -> Condition {
        Condition {
            ecc_uncorrected: self.ecc_uncorrected.min(later.ecc_uncorrected),
            remap_pending: self.remap_pending && later.remap_pending,
            remap_failed: self.remap_failed && later.remap_failed,
        }
    }

    /// What is wrong now that was not yet in an earlier condition.
    pub fn new_faults(&self, earlier: &Condition) -> impl Iterator<Item = Fault> + use<> {
        let known = *earlier;
        self.faults().filter(move |fault| match fault {
            Fault::UncorrectedEcc { errors } => *errors > known.ecc_uncorrected.unwrap_or(0),
            Fault::RemapPending => !known.remap_pending,
            Fault::RemapFailed => !known.remap_failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_known_is_not_new_and_more_of_it_is() {
        let ecc = |errors| Condition { ecc_uncorrected: Some(errors), ..Condition::default() };
        assert_eq!(ecc(0).new_faults(&Condition::default()).count(), 0);
        let errors = Fault::UncorrectedEcc { errors: 2 };
        assert_eq!(ecc(2).new_faults(&Condition::default()).collect::<Vec<_>>(), [errors]);
        assert_eq!(ecc(2).new_faults(&ecc(2)).count(), 0);
        assert_eq!(ecc(2).new_faults(&ecc(1)).count(), 1);
        let remap = Condition { remap_pending: true, ..ecc(2) };
        assert_eq!(remap.new_faults(&ecc(2)).collect::<Vec<_>>(), [Fault::RemapPending]);
        assert_eq!(remap.new_faults(&remap).count(), 0);
        assert_eq!(remap.still(&ecc(1)), ecc(1), "a reset");
        assert_eq!(ecc(1).still(&remap), ecc(1), "more is not accepted with it");
    }

    #[test]
    fn programs_own_errors_are_no_fault_of_the_hardware() {
        for xid in [13, 31, 43, 45, 0, u64::MAX] {
            assert_eq!(Xid(xid).hardware_fault(), None, "{xid}");
        }
        assert!([48, 63, 64, 79, 94, 95].into_iter().all(|n| Xid(n).hardware_fault().is_some()));
        assert!(!Xid(63).ends_programs() && Xid(48).ends_programs());
        assert_eq!(Xid(94).to_string(), "XID 94 (contained ECC error)");
    }
}
