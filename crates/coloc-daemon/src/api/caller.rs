//! Who calls: the kernel says so of both ends of a Unix socket.

use crate::owner::Caller;
use crate::record::Uid;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;
use tokio::net::UnixStream;

/// The user at the other end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    uid: u32,
}

/// Nobody: the kernel did not say.
const NOBODY: u32 = 65_534;

impl Peer {
    /// Asks the kernel.
    pub fn of(stream: &UnixStream) -> Self {
        let uid = stream.peer_cred().map_or(NOBODY, |credentials| credentials.uid());
        Peer { uid }
    }

    /// What the user may do: root, and whoever runs the daemon, may touch everybody's tasks.
    pub fn caller(self) -> Caller {
        let daemon = rustix::process::geteuid().as_raw();
        Caller { uid: Uid(self.uid), admin: self.uid == 0 || self.uid == daemon }
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get().copied().unwrap_or(Peer { uid: NOBODY }))
    }
}
