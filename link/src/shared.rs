//! What the driver, the outboxes and the events of one link have in common.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use evenhand_protocol::chunk::{Assembler, Sent};
use rumqttc::{AsyncClient, Publish, QoS};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::AbortHandle;

use crate::resend::Allowance;

/// Packets that may be on their way without the broker's acknowledgement.
pub(crate) const WINDOW: u32 = 32;

/// Requests for lost chunks that are served at a time; further ones are ignored, for they come again.
pub(crate) const COURIERS: usize = 4;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: AsyncClient,
    pub(crate) payload_bytes_max: usize,
    /// One permit a packet that may be sent; taken when it is queued, given back by its acknowledgement.
    /// At most WINDOW packets are thus ever queued, in flight or waiting for a reconnect, which is less
    /// than the in-flight limit of rumqttc: retransmission can never run out of packet ids.
    pub(crate) window: Semaphore,
    /// Held while a message is being queued, so that messages are not interleaved.
    pub(crate) turn: AsyncMutex<()>,
    pub(crate) couriers: Arc<Semaphore>,
    pub(crate) sent: Mutex<Sent>,
    pub(crate) allowance: Mutex<Allowance>,
    pub(crate) receiving: Mutex<Receiving>,
    pub(crate) inbox: Inbox,
    pub(crate) connected: AtomicBool,
    pub(crate) bytes_up: AtomicU64,
    pub(crate) bytes_down: AtomicU64,
    pub(crate) started: Instant,
    pub(crate) driver: OnceLock<AbortHandle>,
}

#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) assembler: Assembler,
    /// Whether a task looks after the unfinished transfers.
    pub(crate) watched: bool,
}

impl Shared {
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

/// Bytes that wait to be read by the program, and the packets not acknowledged because of them.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes_max: usize,
    bytes: AtomicUsize,
    held: Mutex<Vec<u16>>,
}

impl Inbox {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: AtomicUsize::new(0), held: Mutex::default() }
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.bytes_max
    }

    /// Leaves the packet unacknowledged for now.
    pub(crate) fn hold(&self, packet_id: u16) {
        locked(&self.held).push(packet_id);
    }

    /// Packets of a lost connection are acknowledged when the broker sends them again.
    pub(crate) fn forget_held(&self) {
        locked(&self.held).clear();
    }

    /// Acknowledges what was held, once there is room again.
    pub(crate) fn release(&self, client: &AsyncClient) {
        if self.full() {
            return;
        }
        locked(&self.held).retain(|packet_id| {
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
