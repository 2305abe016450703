//! The request to end a run early.

use tokio::sync::watch;

/// The user's request to end; clones share it.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Sender<bool>);

impl Default for Interrupt {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Interrupt {
    /// Requests the end.
    pub fn raise(&self) {
        self.0.send_replace(true);
    }

    /// True if the end was requested.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the end is requested.
    pub async fn raised(&self) {
        let mut listener = self.0.subscribe();
        let _never_gone = listener.wait_for(|raised| *raised).await;
    }
}
