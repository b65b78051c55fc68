//! The listener on the network, with TLS.

use super::{DaemonError, Listen, Web};
use crate::api::{self, ApiState, Reach};
use crate::tls::Identity;
use axum::Router;
use std::net::SocketAddr;
use std::path::Path;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Listens on the network.
pub(super) struct Network {
    listener: TcpListener,
    tls: TlsAcceptor,
    pub(super) reach: Reach,
}

impl Network {
    pub(super) async fn open(at: &Listen, state: &Path) -> Result<Self, DaemonError> {
        let identity = match &at.identity {
            Some(identity) => identity.clone(),
            None => Identity::own(&state.join("tls"), at.address.ip())?,
        };
        let (tls, fingerprint) = identity.server()?;
        let fail = |source| DaemonError::Listen { address: at.address, source };
        let listener = TcpListener::bind(at.address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        tracing::info!("listening at https://{address}, certificate {fingerprint}");
        Ok(Network { listener, tls: tls.into(), reach: Reach { address, fingerprint } })
    }

    pub(super) async fn serve(network: Option<Self>, router: Router) {
        match network {
            Some(Network { listener, tls, .. }) => api::serve_remote(listener, tls, router).await,
            None => std::future::pending().await,
        }
    }
}

/// Serves the page on this machine.
pub(super) struct Page {
    listener: TcpListener,
    pub(super) address: SocketAddr,
    anonymous: bool,
}

impl Page {
    pub(super) async fn open(Web { address, anonymous }: Web) -> Result<Self, DaemonError> {
        let fail = |source| DaemonError::Listen { address, source };
        // In the clear, a token must not leave this machine.
        if !address.ip().is_loopback() {
            let why = "the page is served in the clear, so on this machine only: 127.0.0.1 or [::1]; `--listen` serves it to others";
            return Err(fail(std::io::Error::other(why)));
        }
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        tracing::info!("page at http://localhost:{}: `coloc web` signs in", address.port());
        Ok(Page { listener, address, anonymous })
    }

    pub(super) async fn serve(page: Option<Self>, router: Router) {
        match page {
            Some(Page { listener, anonymous, .. }) => {
                api::serve_page(listener, router, anonymous).await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Listens where metrics are read. Who connects there is not asked for a name: an address that others can reach is told.
pub(super) async fn open_metrics(address: SocketAddr) -> Result<TcpListener, DaemonError> {
    let fail = |source| DaemonError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    tracing::info!("metrics at http://{address}/metrics");
    if !address.ip().is_loopback() {
        tracing::warn!(
            "whoever can reach {address} reads metrics there, with names of users and tasks, unencrypted"
        );
    }
    Ok(listener)
}

pub(super) async fn serve_metrics(listener: Option<TcpListener>, api: ApiState) {
    match listener {
        Some(listener) => api::serve_metrics(listener, api).await,
        None => std::future::pending().await,
    }
}
