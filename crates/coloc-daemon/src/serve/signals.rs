//! What the daemon is told by signals.

use crate::api::ApiState;
use crate::owner::Caller;
use tokio::signal::unix::{SignalKind, signal};

/// SIGHUP: reads the configuration again. A wrong one is told, and the old one stays.
pub(super) async fn reload_when_told(api: ApiState) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    while hangup.recv().await.is_some() {
        match api.reload(Caller::DAEMON).await {
            Ok(reloaded) => tracing::info!("{}", reloaded.told()),
            Err(refused) => tracing::warn!("{refused}; the old settings stay"),
        }
    }
    std::future::pending().await
}

/// SIGTERM or SIGINT.
pub(super) async fn told_to_stop() {
    let (Ok(mut term), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
}
