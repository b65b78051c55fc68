//! Tokens: made by their user, or by root for others, where the kernel says who that is.

use super::answer::Failure;
use super::request::{Body, Path};
use super::{ApiState, Peer, State};
use crate::administration::admins;
use crate::owner::{Invalid, Refused};
use crate::record::Uid;
use crate::tokens::{TokenError, Tokens};
use axum::Json;
use coloc_api::SCHEMA;
use coloc_api::answer::{TokenList, TokenMade, Versioned};
use coloc_api::fingerprint::Fingerprint;
use coloc_api::moment::Moment;
use coloc_api::request::TokenRequest;
use coloc_api::view::TokenView;
use std::sync::Arc;

/// Where the daemon can be reached from elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// The address.
    pub address: std::net::SocketAddr,
    /// Of its certificate.
    pub fingerprint: Fingerprint,
}

async fn away<T: Send + 'static>(
    api: &ApiState,
    work: impl FnOnce(&Tokens) -> Result<T, TokenError> + Send + 'static,
) -> Result<T, Failure> {
    let tokens: Arc<Tokens> = api.tokens.clone();
    let done = tokio::task::spawn_blocking(move || work(&tokens)).await;
    done.map_err(|_| Failure::Stopping)?.map_err(Failure::Token)
}

pub(super) async fn create(
    api: State,
    peer: Peer,
    Body(request, _held): Body<TokenRequest>,
) -> Result<Json<TokenMade>, Failure> {
    let TokenRequest { user, label, lasts_s, scope } = request;
    // One that was stolen must not have children that outlive it.
    if peer.by_token {
        return Err(Failure::NotByToken);
    }
    let uid = whose(peer, user.as_deref())?;
    if label.len() > crate::bounds::LABEL || label.chars().any(char::is_control) {
        return Err(Refused::from(Invalid::Label).into());
    }
    if lasts_s.is_some_and(|seconds| !(1.0..=1e10).contains(&seconds)) {
        return Err(Refused::from(Invalid::Lifetime).into());
    }
    let now = Moment::now();
    let expires = lasts_s.map(|seconds| Moment(now.0 + (seconds * 1000.0) as u64));
    let (token, view) = away(&api, move |all| all.create(now, uid, label, expires, scope)).await?;
    tracing::info!("{} made token {} of {}", peer.name(), view.id, view.user);
    let reach = api.reach;
    let (listens, fingerprint) =
        (reach.map(|r| r.address.to_string()), reach.map(|r| r.fingerprint.to_string()));
    Ok(Json(TokenMade { schema: SCHEMA, token, view, listens, fingerprint }))
}

/// The user for whom a token is to be.
fn whose(peer: Peer, user: Option<&str>) -> Result<Uid, Failure> {
    let caller = peer.caller();
    let Some(user) = user else { return Ok(caller.uid) };
    let unknown = || Refused::from(Invalid::NoSuchUser(user.to_owned()));
    let uid = crate::users::find(user).ok_or_else(unknown)?;
    // A token is as good as its user: an administrator with one of root's would be root.
    if uid != caller.uid && !admins::is_superuser(caller.uid) {
        return Err(Refused::TokenForOthers.into());
    }
    Ok(uid)
}

pub(super) async fn list(api: State, peer: Peer) -> Result<Json<TokenList>, Failure> {
    let caller = peer.caller();
    let of = (!caller.admin).then_some(caller.uid);
    Ok(Json(TokenList { schema: SCHEMA, tokens: api.tokens.list(of) }))
}

pub(super) async fn revoke(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<TokenView>>, Failure> {
    let caller = peer.caller();
    let of = (!caller.admin).then_some(caller.uid);
    let revoked = away(&api, move |all| all.revoke(Moment::now(), id, of)).await?;
    tracing::info!("{} revoked token {id} of {}", peer.name(), revoked.user);
    Ok(Json(Versioned::new(revoked)))
}
