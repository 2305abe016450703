//! Counters and gauges of the broker.

/// Counters and gauges of a broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BrokerStats {
    /// Clients connected now.
    pub connections: usize,
    /// Sessions, connected or not.
    pub sessions: usize,
    /// Retained messages.
    pub retained: usize,
    /// Bytes of the retained messages.
    pub retained_bytes: usize,
    /// Bytes queued or not yet acknowledged.
    pub waiting_bytes: usize,
    /// Messages received so far.
    pub received: u64,
    /// Messages sent to clients so far.
    pub delivered: u64,
    /// Messages dropped so far because a client's queue was full.
    pub dropped: u64,
    /// Logins refused so far for a wrong user name or password.
    pub refused_logins: u64,
}
