//! State that the driver, the publishers and the event stream of one link share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use evenhand_protocol::chunk::{Assembler, SentTransfers};
use rumqttc::{AsyncClient, Publish, QoS};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::AbortHandle;

use crate::Sealing;
use crate::resend::ResendBudget;

/// Packets that may be on their way without the broker's acknowledgement.
pub(crate) const WINDOW: u32 = 32;

/// Requests for lost chunks that are answered at a time; further ones are ignored, for they are repeated.
pub(crate) const RESENDS_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct LinkState {
    pub(crate) client: AsyncClient,
    pub(crate) payload_bytes_max: usize,
    pub(crate) sealing: Option<Arc<dyn Sealing>>,
    /// One permit a packet that may be sent; taken when it is queued, returned by its acknowledgement.
    /// At most WINDOW packets are thus ever queued, in flight or waiting for a reconnect, which is less
    /// than the in-flight limit of rumqttc: retransmission can never run out of packet ids.
    pub(crate) window: Semaphore,
    /// Locked while a message is being queued, so that messages are not interleaved.
    pub(crate) publishing: AsyncMutex<()>,
    pub(crate) resends: Arc<Semaphore>,
    pub(crate) sent: Mutex<SentTransfers>,
    pub(crate) resend_budget: Mutex<ResendBudget>,
    pub(crate) reassembly: Mutex<Reassembly>,
    pub(crate) backlog: InboundBacklog,
    pub(crate) connected: AtomicBool,
    pub(crate) bytes_up: AtomicU64,
    pub(crate) bytes_down: AtomicU64,
    pub(crate) started: Instant,
    pub(crate) driver: OnceLock<AbortHandle>,
}

#[derive(Debug)]
pub(crate) struct Reassembly {
    pub(crate) assembler: Assembler,
    /// True while a task requests the missing chunks of incomplete transfers.
    pub(crate) has_task: bool,
}

impl LinkState {
    pub(crate) fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Ends the link at once.
    pub(crate) fn end(&self) {
        self.connected.store(false, Ordering::Relaxed);
        self.window.close();
        if let Some(driver) = self.driver.get() {
            driver.abort();
        }
    }
}

/// Bytes that wait to be read by the program, and the packets that are not acknowledged because of them.
#[derive(Debug)]
pub(crate) struct InboundBacklog {
    bytes_max: usize,
    bytes: AtomicUsize,
    unacknowledged: Mutex<Vec<u16>>,
}

impl InboundBacklog {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: AtomicUsize::new(0), unacknowledged: Mutex::default() }
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.bytes_max
    }

    /// Postpones the acknowledgement of a packet.
    pub(crate) fn postpone(&self, packet_id: u16) {
        locked(&self.unacknowledged).push(packet_id);
    }

    /// Drops postponed acknowledgements of a lost connection: the broker delivers these packets again.
    pub(crate) fn drop_postponed(&self) {
        locked(&self.unacknowledged).clear();
    }

    /// Sends the postponed acknowledgements once there is room again.
    pub(crate) fn acknowledge(&self, client: &AsyncClient) {
        if self.is_full() {
            return;
        }
        locked(&self.unacknowledged).retain(|packet_id| {
            let mut packet = Publish::new("", QoS::AtLeastOnce, Vec::new());
            packet.pkid = *packet_id;
            client.try_ack(&packet).is_err()
        });
    }
}

/// A panic elsewhere leaves these structures whole, so its poison is ignored.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
