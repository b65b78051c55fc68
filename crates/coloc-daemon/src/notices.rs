//! Notices: events of tasks that hooks are to be told of.

use crate::record::Uid;
use coloc_api::moment::Moment;
use coloc_api::notify::{Channel, HookUrl, Notify, NotifyEvent};
use coloc_model::{Millis, TaskId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub use coloc_api::notify::SENDMAIL;

/// What administrators say of hooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotifySettings {
    /// Hooks for all users' tasks. They run as the daemon's user.
    pub hooks: Vec<Notify>,
    /// Hosts and ports that users' webhooks may be on.
    pub webhook_allow: Vec<String>,
    /// A wait of this length is long.
    pub long_wait: Millis,
    /// The program that takes mail.
    pub sendmail: PathBuf,
}

impl Default for NotifySettings {
    fn default() -> Self {
        NotifySettings {
            hooks: Vec::new(),
            webhook_allow: Vec::new(),
            long_wait: Millis::from_secs(3600),
            sendmail: SENDMAIL.into(),
        }
    }
}

impl NotifySettings {
    /// Whether users may have a webhook there.
    pub fn allows(&self, url: &HookUrl) -> bool {
        self.webhook_allow.iter().any(|rule| url.is_allowed_by(rule))
    }
}

/// Whose hook it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOf {
    /// The administrators'.
    Administrators,
    /// The user's who submitted the task.
    User,
}

/// An event that one hook is to be told of. It is written down with what happened, and forgotten when it was told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// Its number: a receiver that gets one twice knows it by that.
    pub id: u64,
    /// The task.
    pub task: TaskId,
    /// The user who submitted it.
    pub owner: Uid,
    /// What happened.
    pub event: NotifyEvent,
    /// When.
    pub at: Moment,
    /// How it is told.
    pub channel: Channel,
    /// Whose hook it is.
    pub hook_of: HookOf,
    /// How often that was tried.
    #[serde(default)]
    pub tries: u32,
    /// What is told, as JSON.
    pub body: String,
}

/// What became of a notice.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeliveryError {
    /// It may work later.
    #[error("{0}")]
    Later(String),
    /// It never will.
    #[error("{0}")]
    Never(String),
}
