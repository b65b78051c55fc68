//! Flags that several verbs share.

/// Gives a clap enum the names of the contract and the values they stand for.
macro_rules! flag_values {
    ($(#[$doc:meta])* $flag:ident => $target:ty { $($(#[$help:meta])* $variant:ident => $value:expr),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
        pub(crate) enum $flag { $($(#[$help])* $variant),* }

        impl From<$flag> for $target {
            fn from(flag: $flag) -> $target {
                match flag { $($flag::$variant => $value),* }
            }
        }
    };
}

pub(crate) mod accounts;
pub(crate) mod administration;
pub(crate) mod bounds;
pub(crate) mod host;
pub(crate) mod input;
pub(crate) mod live;
pub(crate) mod log;
pub(crate) mod notify;
pub(crate) mod physics;
pub(crate) mod policy;
pub(crate) mod pool;
pub(crate) mod replay;
pub(crate) mod service;
pub(crate) mod slurm;
pub(crate) mod task;
pub(crate) mod training;
pub(crate) mod tuning;
