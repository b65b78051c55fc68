//! The listener on the network, with TLS.

use super::{DaemonError, Listen};
use crate::api::{self, Reach};
use crate::tls::Identity;
use axum::Router;
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
