//! Telling systemd how the daemon is, where it wants to know.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The daemon answers from now on.
pub const READY: &str = "READY=1";
/// The daemon is about to end.
pub const STOPPING: &str = "STOPPING=1";

/// Says a word to systemd. Where it does not listen nothing is lost.
pub fn tell(word: &str) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match place.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&place),
    };
    let sent = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(word.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!("cannot tell systemd {word}: {error}");
    }
}
