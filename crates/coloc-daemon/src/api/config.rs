//! Settings: which are in force, and reading them again.

use super::answer::Failure;
use super::{Desk, Peer, SCHEMA, State};
use crate::owner::{Answer, Caller, Command, Refused};
use crate::settings::{Said, Settings};
use axum::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings in force that somebody chose; the others are as `coloc daemon --help` tells.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ConfigInForce {
    /// The version of the answer.
    pub schema: u32,
    /// Each with where it was chosen.
    pub settings: Vec<Said>,
    /// The policy that they and the preset amount to.
    #[serde(default)]
    pub policy: serde_json::Value,
    /// Seconds from a polite request to end to a kill.
    #[serde(default)]
    pub grace_s: f64,
    /// Seconds that what ended tasks leave is kept; without a number, for ever.
    #[serde(default)]
    pub keep_logs_s: Option<f64>,
    /// The most that all tasks may leave, in bytes.
    #[serde(default)]
    pub keep_logs_bytes: Option<u64>,
}

/// What a reload came to.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Reload {
    /// The version of the answer.
    pub schema: u32,
    /// The settings in force now.
    pub settings: Vec<Said>,
    /// Settings that have changed but count at the next start only.
    pub at_next_start: Vec<String>,
}

impl Reload {
    /// In a sentence.
    pub fn told(&self) -> String {
        match self.at_next_start.as_slice() {
            [] => "the configuration was read again and is in force".to_owned(),
            later => format!(
                "the configuration was read again and is in force, but for {}: these count at the next start",
                later.join(", ")
            ),
        }
    }
}

impl Desk {
    /// Reads the configuration again and has the owner live by it.
    pub(crate) async fn reload(&self, caller: Caller) -> Result<Reload, Refused> {
        if !caller.admin {
            return Err(Refused::NotAdmin);
        }
        let source = self.source.clone();
        let read = tokio::task::spawn_blocking(move || source.read()).await;
        let read = read.unwrap_or_else(|_| Err("the configuration could not be read".to_owned()));
        let reloaded = read.map_err(Refused::Invalid)?;
        let (settings, at_next_start) = (reloaded.settings.said.clone(), reloaded.at_next_start);
        let command = Command::Reconfigure(Box::new(reloaded.settings));
        match self.ask(caller, command).await {
            Ok(Answer::Done) => Ok(Reload { schema: SCHEMA, settings, at_next_start }),
            Ok(other) => Err(Refused::Invalid(format!("{other:?}"))),
            Err(Failure::Refused(refused)) => Err(refused),
            Err(failure) => Err(Refused::Invalid(failure.to_string())),
        }
    }
}

pub(super) async fn show(desk: State, peer: Peer) -> Result<Json<ConfigInForce>, Failure> {
    match desk.ask(peer.caller(), Command::Settings).await? {
        Answer::Settings(settings) => {
            let Settings { said, policy, grace, retention, .. } = *settings;
            let policy = serde_json::to_value(policy);
            let policy = policy.map_err(|error| Failure::Unexpected(error.to_string()))?;
            Ok(Json(ConfigInForce {
                schema: SCHEMA,
                settings: said,
                policy,
                grace_s: grace.secs(),
                keep_logs_s: retention.age.map(coloc_model::Millis::secs),
                keep_logs_bytes: retention.size.map(|size| size.0),
            }))
        }
        other => Err(Failure::unexpected(other)),
    }
}

pub(super) async fn reload(desk: State, peer: Peer) -> Result<Json<Reload>, Failure> {
    Ok(Json(desk.reload(peer.caller()).await?))
}
