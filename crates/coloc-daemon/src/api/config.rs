//! Settings: which are in force, and reading them again.

use super::answer::Failure;
use super::{ApiState, Peer, State};
use crate::owner::{Caller, Command, Invalid, Refused};
use crate::settings::Settings;
use axum::Json;
use coloc_api::SCHEMA;
use coloc_api::answer::{ConfigInForce, Reload};

impl ApiState {
    /// Reads the configuration again and has the owner live by it.
    pub(crate) async fn reload(&self, caller: Caller) -> Result<Reload, Refused> {
        if !caller.admin {
            return Err(Refused::NotAdmin);
        }
        let source = self.source.clone();
        let read = tokio::task::spawn_blocking(move || source.read()).await;
        let read = read.unwrap_or_else(|_| Err("the configuration could not be read".to_owned()));
        let reloaded = read.map_err(Invalid::Configuration)?;
        let (settings, at_next_start) = (reloaded.settings.chosen.clone(), reloaded.at_next_start);
        let bounds = reloaded.settings.bounds;
        let command = |reply| Command::Reconfigure(Box::new(reloaded.settings), reply);
        match self.ask(caller, command).await {
            Ok(()) => {
                self.user_limits.set(bounds);
                Ok(Reload { schema: SCHEMA, settings, at_next_start })
            }
            Err(Failure::Refused(refused)) => Err(refused),
            Err(failure) => Err(Invalid::Configuration(failure.to_string()).into()),
        }
    }
}

pub(super) async fn show(api: State, peer: Peer) -> Result<Json<ConfigInForce>, Failure> {
    let settings = api.ask(peer.caller(), Command::Settings).await?;
    let Settings { chosen, policy, grace, retention, .. } = *settings;
    let policy = serde_json::to_value(policy);
    let policy = policy.map_err(|error| Failure::Unexpected(error.to_string()))?;
    Ok(Json(ConfigInForce {
        schema: SCHEMA,
        settings: chosen,
        policy,
        grace_s: grace.secs(),
        keep_logs_s: retention.age.map(coloc_model::Millis::secs),
        keep_logs_bytes: retention.size.map(|size| size.0),
    }))
}

pub(super) async fn reload(api: State, peer: Peer) -> Result<Json<Reload>, Failure> {
    let done = api.reload(peer.caller()).await;
    match &done {
        Ok(reloaded) => {
            tracing::info!("{} has settings read again: {}", peer.name(), reloaded.told())
        }
        Err(refused) => {
            tracing::warn!("{} cannot have settings read again: {refused}", peer.name())
        }
    }
    Ok(Json(done?))
}
