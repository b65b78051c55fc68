//! What a driver can answer instead of what was asked.

use coloc_model::Millis;

/// A question to the driver was not answered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DriverError {
    /// The driver's library is not on this machine.
    #[error(
        "no NVIDIA driver: {detail}; install the driver, or try `coloc emu run --fleet 4xA100-40GB -- COMMAND`"
    )]
    NoLibrary {
        /// What the loader said.
        detail: String,
    },
    /// The library is there but the kernel module is not.
    #[error("the NVIDIA kernel module is not loaded; try `modprobe nvidia`")]
    NotLoaded,
    /// The library and the kernel module are of different versions, as after an upgrade.
    #[error(
        "the NVIDIA library and kernel module are of different versions; reload the module or reboot"
    )]
    VersionMismatch,
    /// The device fell off the bus.
    #[error(
        "the GPU is lost: it fell off the bus; `dmesg` has the XID, and a reboot may bring it back"
    )]
    Lost,
    /// The device must be reset before it can be used.
    #[error("the GPU must be reset before it can be used: `nvidia-smi --gpu-reset -i GPU`")]
    ResetRequired,
    /// The user may not do this.
    #[error("{what} needs more rights than this user has")]
    NoPermission {
        /// What was tried.
        what: &'static str,
    },
    /// The device, or the driver's version, cannot do this.
    #[error("{what} is not supported by this device or driver")]
    NotSupported {
        /// What was tried.
        what: &'static str,
    },
    /// A process uses what was to be changed.
    #[error("{what} is refused while the device is in use")]
    InUse {
        /// What was tried.
        what: &'static str,
    },
    /// No slices are left.
    #[error("{what} is refused: not enough free slices")]
    InsufficientResources {
        /// What was tried.
        what: &'static str,
    },
    /// There is no such device, instance or profile.
    #[error("{what}: there is no such device, instance or profile")]
    NotFound {
        /// What was asked for.
        what: &'static str,
    },
    /// The driver did not answer in time. It may still be at it.
    #[error("the driver did not answer within {after}")]
    TimedOut {
        /// How long it was waited for.
        after: Millis,
    },
    /// An earlier question is still unanswered, so this one was not asked.
    #[error("the driver hangs: an earlier question is still unanswered")]
    Hung,
    /// Anything else.
    #[error("{what} failed: {detail}")]
    Other {
        /// What was tried.
        what: &'static str,
        /// What the driver said.
        detail: String,
    },
}

impl DriverError {
    /// Whether this says that one device is out of service, rather than that a question was wrong.
    pub fn is_device_loss(&self) -> bool {
        matches!(self, DriverError::Lost | DriverError::ResetRequired)
    }

    /// Whether only a new connection to the driver can help.
    pub fn wants_reconnect(&self) -> bool {
        matches!(
            self,
            DriverError::NoLibrary { .. } | DriverError::NotLoaded | DriverError::VersionMismatch
        )
    }
}
