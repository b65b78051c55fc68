//! Where a daemon is, and a connection to it.

use super::http::{Connection, Wire, set_timeout};
use super::{ClientError, LONGEST_SILENCE, broken};
use crate::tls::{self, Trust};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};
use std::{fmt, io};

/// A host that has not answered by then is not there.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Where a daemon is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// On this machine.
    Socket(PathBuf),
    /// Elsewhere.
    Remote {
        /// Where.
        host: Host,
        /// What says which user calls.
        token: Option<Secret>,
        /// Which daemon is believed to be there.
        trust: Trust,
    },
}

impl Address {
    pub(super) fn token(&self) -> Option<&str> {
        match self {
            Address::Remote { token: Some(Secret(token)), .. } => Some(token),
            _ => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Socket(path) => write!(f, "{}", path.display()),
            Address::Remote { host, .. } => write!(f, "{host}"),
        }
    }
}

/// `HOST:PORT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    name: String,
    port: u16,
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("{text:?} is no host; expected HOST:PORT, such as gpu1:7450");
        if text.starts_with("http://") {
            return Err("a daemon speaks https over the network, never http".to_owned());
        }
        let bare = text.trim().trim_start_matches("https://").trim_end_matches('/');
        let (name, port) = bare.rsplit_once(':').ok_or_else(fail)?;
        let port = port.parse().map_err(|_| fail())?;
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let name = inner.unwrap_or(name).to_owned();
        // What has colons of its own needs brackets, or the port is guesswork.
        let plain = inner.is_some() || !name.contains(':');
        ServerName::try_from(name.clone()).map_err(|_| fail())?;
        plain.then_some(Host { name, port }).ok_or_else(fail)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

pub(super) fn open(address: &Address) -> Result<Connection, ClientError> {
    match address {
        Address::Socket(socket) => {
            let stream = UnixStream::connect(socket).map_err(|source| {
                ClientError::Unreachable { socket: socket.clone(), source, also: None }
            })?;
            set_timeout(&stream, LONGEST_SILENCE).map_err(broken)?;
            Ok(Connection::over(stream))
        }
        Address::Remote { host, trust, .. } => {
            let name = ServerName::try_from(host.name.clone()).map_err(broken)?;
            let tls = ClientConnection::new(trust.client()?, name).map_err(broken)?;
            let unreachable = |source: io::Error| match tls::distrust(&source) {
                Some(problem) => ClientError::Untrusted { host: host.clone(), problem },
                None => ClientError::NoHost { host: host.clone(), source },
            };
            encrypted(host, tls).map(Connection::over).map_err(unreachable)
        }
    }
}

fn encrypted(host: &Host, mut tls: ClientConnection) -> io::Result<impl Wire + use<>> {
    let until = Instant::now() + TIMEOUT;
    let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let late = || io::Error::from(io::ErrorKind::TimedOut);
    let mut reached = Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
    for place in (host.name.as_str(), host.port).to_socket_addrs()? {
        reached = TcpStream::connect_timeout(&place, left());
        if reached.is_ok() || Instant::now() >= until {
            break;
        }
    }
    let mut stream = reached?;
    let _ = stream.set_nodelay(true);
    while tls.is_handshaking() {
        if Instant::now() >= until {
            return Err(late());
        }
        set_timeout(&stream, left())?;
        tls.complete_io(&mut stream).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => late(),
            _ => error,
        })?;
    }
    set_timeout(&stream, LONGEST_SILENCE)?;
    Ok(StreamOwned::new(tls, stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_a_name_and_a_port() {
        for (text, read) in [
            ("gpu1:7450", "gpu1:7450"),
            ("https://gpu1.example.org:7450/", "gpu1.example.org:7450"),
            ("10.0.0.1:1", "10.0.0.1:1"),
            ("[::1]:7450", "[::1]:7450"),
        ] {
            assert_eq!(text.parse::<Host>().map(|host| host.to_string()), Ok(read.to_owned()));
        }
        for wrong in
            ["", "gpu1", "gpu1:", "gpu1:70000", "::1:7450", "a b:1", "http://gpu1:7450", ":7450"]
        {
            assert!(wrong.parse::<Host>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        assert!(!format!("{:?}", Secret("coloc_1_ab".to_owned())).contains("ab"));
    }
}
