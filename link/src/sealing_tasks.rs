//! Tasks that publish what the sealing says by itself.

use std::sync::Arc;
use std::time::Duration;

use evenhand_seal::SealedMessage;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time;

use crate::sealing::Sealing;
use crate::{LinkError, Publisher};

/// The interval in which the sealing is asked what is due.
const SEALING_EVERY: Duration = Duration::from_secs(1);

/// Publishes what the sealing answers by itself.
pub(crate) async fn publish_replies(publisher: Publisher, mut replies: UnboundedReceiver<SealedMessage>) {
    while let Some(reply) = replies.recv().await {
        match publisher.publish_sealed(reply).await {
            Ok(()) => {}
            Err(LinkError::Closed) => return,
            Err(error) => tracing::error!(%error, "cannot answer a handshake"),
        }
    }
}

/// Publishes what the sealing says again because nobody answered.
pub(crate) async fn publish_when_due(publisher: Publisher, sealing: Arc<dyn Sealing>) {
    loop {
        time::sleep(SEALING_EVERY).await;
        if publisher.state.window.is_closed() {
            return;
        }
        if publisher.connected()
            && let Some(due) = sealing.due(publisher.state.now_ms())
            && let Err(error) = publisher.publish_sealed(due).await
        {
            tracing::debug!(%error, "cannot repeat a handshake");
        }
    }
}
