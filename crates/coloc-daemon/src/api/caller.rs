//! The user who calls: the kernel says so of both ends of a Unix socket, and a token does over the network.

use super::answer::Failure;
use super::unauthenticated::UnauthenticatedConnection;
use super::web::{Door, SESSION};
use super::{ApiState, State};
use crate::administration::admins;
use crate::owner::Caller;
use crate::record::Uid;
use crate::tokens::TokenError;
use axum::extract::{FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use coloc_api::moment::Moment;
use coloc_api::view::Scope;
use std::sync::Arc;
use tokio::net::UnixStream;

/// The user at the other end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Peer {
    uid: u32,
    /// Only a token says so, not the kernel.
    pub(super) by_token: bool,
    /// What the caller may do.
    pub(super) scope: Scope,
    /// Nothing names the user.
    anonymous: bool,
}

/// The user "nobody": the kernel did not say.
const NOBODY: u32 = 65_534;

impl Peer {
    /// Asks the kernel.
    pub(super) fn of(stream: &UnixStream) -> Self {
        let uid = stream.peer_cred().map_or(NOBODY, |credentials| credentials.uid());
        Peer { uid, by_token: false, scope: Scope::Act, anonymous: false }
    }

    /// What the user may do: administrators may touch every user's tasks.
    pub(super) fn caller(self) -> Caller {
        let uid = Uid(self.uid);
        Caller { uid, admin: !self.anonymous && admins::is_admin(uid) }
    }

    /// The user's name.
    pub(super) fn name(self) -> String {
        crate::users::name(Uid(self.uid))
    }

    /// The kernel says which user it is, and nothing else does.
    pub(super) fn is_named_by_kernel(self) -> bool {
        !self.by_token && !self.anonymous
    }

    /// A client who may look though nothing names it. No user has this number.
    const ANONYMOUS: Peer =
        Peer { uid: u32::MAX, by_token: false, scope: Scope::Read, anonymous: true };
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parts.extensions.get().copied().ok_or(Failure::NoToken)
    }
}

/// Lets in a user whom the kernel named, and one who has a token. Nothing of what others send is looked at.
pub(super) async fn admit(api: State, mut request: Request, next: Next) -> Response {
    let signs_in = request.uri().path() == SESSION;
    if request.extensions().get::<Peer>().is_none() && !signs_in {
        let newcomer = request.extensions_mut().remove::<Arc<UnauthenticatedConnection>>();
        let admitted = named(&api, &request).and_then(|peer| match newcomer {
            Some(newcomer) => newcomer.is_known(peer.caller(), &api.user_limits).map(|()| peer),
            None => Err(Failure::NoToken),
        });
        match admitted {
            Ok(peer) => request.extensions_mut().insert(peer),
            Err(refused) => return refused.into_response(),
        };
    }
    next.run(request).await
}

/// Refuses a caller who may only look.
pub(super) async fn refuse_readers(peer: Peer, request: Request, next: Next) -> Response {
    match peer.scope {
        Scope::Act => next.run(request).await,
        Scope::Read => Failure::ReadOnly.into_response(),
    }
}

/// The token that a request shows.
pub(super) fn token_in(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(AUTHORIZATION)?.to_str().ok()?;
    Some(shown.strip_prefix("Bearer ")?.trim())
}

/// The user whom a token names, or no user where that is enough to look.
fn named(api: &ApiState, request: &Request) -> Result<Peer, Failure> {
    let open = request.extensions().get() == Some(&Door::Loopback { anonymous: true });
    match open && !request.headers().contains_key(AUTHORIZATION) {
        true => Ok(Peer::ANONYMOUS),
        false => by_token(api, request),
    }
}

fn by_token(api: &ApiState, request: &Request) -> Result<Peer, Failure> {
    if !request.headers().contains_key(AUTHORIZATION) {
        return Err(Failure::NoToken);
    }
    let token = token_in(request.headers()).ok_or(Failure::Token(TokenError::Unknown))?;
    let now = Moment::now();
    let (bearer, note) = api.tokens.admit(now, token).map_err(Failure::Token)?;
    if note {
        let tokens = api.tokens.clone();
        // That it was used is worth a line on the disk, but the request does not wait for it.
        tokio::task::spawn_blocking(move || tokens.save());
    }
    Ok(Peer { uid: bearer.uid.0, by_token: true, scope: bearer.scope, anonymous: false })
}
