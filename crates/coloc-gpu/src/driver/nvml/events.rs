//! Waiting for critical errors by an event set.

use super::{DriverError, LIBRARY, lists, translate};
use crate::device::Uuid;
use crate::health::Xid;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::ffi::OsStr;

const WHAT: &str = "waiting for critical errors";
/// A wait for an event ends this often, to see whether it should go on.
const TURN_MS: u32 = 500;
/// After so many quiet turns GPUs that could not be listened to are tried again.
const TURNS: u32 = 20;

/// What was heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// The set is ready: what happens from now on is heard.
    Listening,
    /// Nothing for a while.
    Nothing,
    /// A critical error.
    Xid {
        /// Of which GPU.
        gpu: Uuid,
        /// Which.
        xid: Xid,
    },
}

/// Hears critical errors until `tell` says that enough was heard, or the driver fails.
pub(crate) fn wait_for_xids(mut tell: impl FnMut(Heard) -> bool) -> Result<(), DriverError> {
    let fail = |error| translate(WHAT, error);
    let nvml = Nvml::builder().lib_path(OsStr::new(LIBRARY)).init().map_err(fail)?;
    // Events name a device by its handle: one that fell off the bus does not tell its UUID any more.
    let (mut known, mut deaf) = (Vec::new(), 0);
    let mut set = nvml.create_event_set().map_err(fail)?;
    for index in 0..nvml.device_count().map_err(fail)? {
        let Ok((device, uuid)) = able(&nvml, index) else {
            deaf += 1;
            continue;
        };
        let registered = device.register_events(EventTypes::CRITICAL_XID_ERROR, set);
        set = registered.map_err(|failed| fail(failed.error))?;
        known.push((lists::handle_number(&device), uuid));
    }
    if known.is_empty() {
        return Err(DriverError::NotSupported { what: WHAT });
    }
    let mut quiet = 0;
    let mut go_on = tell(Heard::Listening);
    while go_on {
        go_on = match set.wait(TURN_MS) {
            Ok(event) => {
                let number = lists::handle_number(&event.device);
                let gpu = known.iter().find(|(known, _)| *known == number);
                match (gpu, event.event_data) {
                    (Some((_, uuid)), Some(XidError::Value(xid))) => {
                        tell(Heard::Xid { gpu: uuid.clone(), xid: Xid(xid) })
                    }
                    _ => tell(Heard::Nothing),
                }
            }
            Err(NvmlError::Timeout) => {
                quiet += 1;
                // A GPU that has come back is listened to as well, by a set with all of them.
                if quiet % TURNS == 0 && deaf > 0 && count_able(&nvml) > known.len() {
                    return Err(DriverError::Lost);
                }
                tell(Heard::Nothing)
            }
            Err(error) => return Err(fail(error)),
        };
    }
    Ok(())
}

/// A device that reports critical errors.
fn able(nvml: &Nvml, index: u32) -> Result<(Device<'_>, Uuid), NvmlError> {
    let device = nvml.device_by_index(index)?;
    let types = device.supported_event_types()?;
    let uuid = Uuid::new(&device.uuid()?);
    match types.contains(EventTypes::CRITICAL_XID_ERROR) {
        true => Ok((device, uuid)),
        false => Err(NvmlError::NotSupported),
    }
}

fn count_able(nvml: &Nvml) -> usize {
    let count = nvml.device_count().unwrap_or(0);
    (0..count).filter(|&index| able(nvml, index).is_ok()).count()
}
