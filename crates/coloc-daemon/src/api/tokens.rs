//! Tokens: made by their user or an administrator, where the kernel says who that is.

use super::answer::{Failure, Versioned};
use super::request::{Body, Path};
use super::{Desk, Peer, SCHEMA, State};
use crate::fingerprint::Fingerprint;
use crate::record::{Moment, Uid};
use crate::tokens::{TokenError, TokenView, Tokens};
use axum::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The longest label.
const LONGEST_LABEL: usize = 100;

/// A token that is wanted.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenRequest {
    /// Whose: the caller's, unless an administrator says otherwise.
    pub user: Option<String>,
    /// What it is for.
    pub label: String,
    /// How long it is good for, in seconds; for ever if nothing is said.
    pub lasts_s: Option<f64>,
}

/// A token that was made.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TokenMade {
    /// The version of the answer.
    pub schema: u32,
    /// The token. Nobody can show it again.
    pub token: String,
    /// What is known of it.
    #[serde(flatten)]
    pub view: TokenView,
    /// Where the daemon listens on the network, if it does.
    pub listens: Option<String>,
    /// What its certificate is known by there.
    pub fingerprint: Option<String>,
}

/// Tokens.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TokenList {
    /// The version of the answer.
    pub schema: u32,
    /// The caller's, or for an administrator everybody's.
    pub tokens: Vec<TokenView>,
}

/// Where the daemon can be reached from elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// The address.
    pub address: std::net::SocketAddr,
    /// Of its certificate.
    pub fingerprint: Fingerprint,
}

async fn away<T: Send + 'static>(
    desk: &Desk,
    work: impl FnOnce(&Tokens) -> Result<T, TokenError> + Send + 'static,
) -> Result<T, Failure> {
    let tokens: Arc<Tokens> = desk.tokens.clone();
    let done = tokio::task::spawn_blocking(move || work(&tokens)).await;
    done.map_err(|_| Failure::Stopping)?.map_err(Failure::Token)
}

pub(super) async fn create(
    desk: State,
    peer: Peer,
    Body(request): Body<TokenRequest>,
) -> Result<Json<TokenMade>, Failure> {
    let TokenRequest { user, label, lasts_s } = request;
    // One that was stolen must not have children that outlive it.
    if peer.by_token {
        return Err(Failure::NotByToken);
    }
    let uid = whose(peer, user.as_deref())?;
    let invalid = |what: &str| Err(crate::owner::Refused::Invalid(what.to_owned()).into());
    if label.len() > LONGEST_LABEL || label.chars().any(char::is_control) {
        return invalid("a label has at most 100 bytes, and no control characters");
    }
    if lasts_s.is_some_and(|seconds| !(1.0..=1e10).contains(&seconds)) {
        return invalid("a token is good for a second at least, and for 300 years at most");
    }
    let now = Moment::now();
    let expires = lasts_s.map(|seconds| Moment(now.0 + (seconds * 1000.0) as u64));
    let (token, view) = away(&desk, move |all| all.create(now, uid, label, expires)).await?;
    let reach = desk.reach;
    let (listens, fingerprint) =
        (reach.map(|r| r.address.to_string()), reach.map(|r| r.fingerprint.to_string()));
    Ok(Json(TokenMade { schema: SCHEMA, token, view, listens, fingerprint }))
}

/// The user for whom a token is to be.
fn whose(peer: Peer, user: Option<&str>) -> Result<Uid, Failure> {
    let caller = peer.caller();
    let Some(user) = user else { return Ok(caller.uid) };
    let refused = |what: String| Failure::from(crate::owner::Refused::Invalid(what));
    let uid =
        crate::users::find(user).ok_or_else(|| refused(format!("there is no user {user:?}")))?;
    if uid != caller.uid && !caller.admin {
        return Err(crate::owner::Refused::NotAdmin.into());
    }
    Ok(uid)
}

pub(super) async fn list(desk: State, peer: Peer) -> Result<Json<TokenList>, Failure> {
    let caller = peer.caller();
    let of = (!caller.admin).then_some(caller.uid);
    Ok(Json(TokenList { schema: SCHEMA, tokens: desk.tokens.list(of) }))
}

pub(super) async fn revoke(
    desk: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<TokenView>>, Failure> {
    let caller = peer.caller();
    let of = (!caller.admin).then_some(caller.uid);
    let revoked = away(&desk, move |all| all.revoke(Moment::now(), id, of)).await?;
    Ok(Json(Versioned::new(revoked)))
}
