//! Who watches.

use super::Report;
use evenhand_federation::Federation;

/// Shows others how the federation stands. It is called between steps and must not take long.
pub trait Witness: Send {
    /// A round is over, and durable.
    fn closed(&mut self, report: &Report);

    /// So the federation stands, after whatever happened.
    fn stands(&mut self, federation: &Federation);
}
