//! Observers of a running federation.

use super::TimedRound;
use evenhand_federation::Federation;

/// Is notified of closed rounds and of changes. It is called between steps and must not take long.
pub trait FederationObserver: Send {
    /// A round was closed, and is durable.
    fn round_closed(&mut self, round: &TimedRound);

    /// The federation after a batch of inputs.
    fn stepped(&mut self, federation: &Federation);
}
