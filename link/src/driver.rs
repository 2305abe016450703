//! The one task that keeps a link alive.
//!
//! rumqttc's event loop must not be interrupted between taking a request and writing it, so the task
//! does nothing but poll it and never waits for anybody else: what comes in goes to a queue that
//! cannot block, what must be answered is handed to tasks of its own.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use evenhand_protocol::chunk::{Assembler, ChunkError, Sent};
use evenhand_protocol::envelope;
use evenhand_protocol::limits::Limits;
use evenhand_protocol::message::{Answer, Message, Missing, Order};
use rumqttc::{
    AsyncClient, ConnectReturnCode, ConnectionError, Event, EventLoop, Packet, Publish, QoS, Request,
    StateError, SubAck, Subscribe, SubscribeFilter, SubscribeReasonCode,
};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::time;

use crate::backoff::{self, Backoff};
use crate::events::{Events, LinkEvent, Malformed};
use crate::members::{Members, PACKET_OVERHEAD_BYTES};
use crate::options::LinkOptions;
use crate::outbox::Outbox;
use crate::shared::{COURIERS, Inbox, Receiving, Shared, WINDOW, locked};
use crate::{LinkError, resend};

/// Room for the window, for acknowledgements that were held back, and a goodbye.
const REQUESTS_MAX: usize = 1 << 16;

/// How long a connection may take to be made, and a packet to be written: a slow line needs a while for 120 KiB.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn start(options: LinkOptions) -> Result<(Outbox, Events), LinkError> {
    let members = Members::new(&options)?;
    let (client, mut event_loop) = AsyncClient::new(members.current(), REQUESTS_MAX);
    event_loop.network_options.set_tcp_nodelay(true);
    event_loop.network_options.set_connection_timeout(NETWORK_TIMEOUT.as_secs());
    let resend_after_ms = options.resend_after.as_millis() as u64;
    let shared = Arc::new(Shared {
        client,
        payload_bytes_max: options.payload_bytes_max,
        window: Semaphore::new(WINDOW as usize),
        turn: AsyncMutex::default(),
        couriers: Arc::new(Semaphore::new(COURIERS)),
        sent: Mutex::new(Sent::new(options.sent_bytes_max)),
        allowance: Mutex::default(),
        receiving: Mutex::new(Receiving {
            assembler: Assembler::new(options.limits, resend_after_ms),
            watched: false,
        }),
        inbox: Inbox::new(options.inbox_bytes_max),
        connected: AtomicBool::new(false),
        bytes_up: AtomicU64::new(0),
        bytes_down: AtomicU64::new(0),
        started: Instant::now(),
        driver: OnceLock::new(),
    });
    let (sender, queue) = mpsc::unbounded_channel();
    let driver = Driver {
        event_loop,
        members,
        outbox: Outbox { shared: Arc::clone(&shared) },
        events: sender,
        backoff: Backoff::new(&options.client_id),
        subscriptions: options.subscriptions,
        limits: options.limits,
        silence_max: 2 * options.keep_alive + NETWORK_TIMEOUT,
        resend_after: options.resend_after,
        unsent: VecDeque::new(),
        session_present: false,
        connected_at: None,
    };
    let outbox = driver.outbox.clone();
    let task = tokio::spawn(driver.run()).abort_handle();
    shared.driver.get_or_init(|| task);
    Ok((outbox, Events { broker: options.broker, shared, queue, early: VecDeque::new() }))
}

struct Driver {
    event_loop: EventLoop,
    members: Members,
    outbox: Outbox,
    events: UnboundedSender<(LinkEvent, usize)>,
    backoff: Backoff,
    subscriptions: Vec<String>,
    limits: Limits,
    silence_max: Duration,
    resend_after: Duration,
    /// What the broker did not acknowledge before it was lost. rumqttc would throw it away if the broker
    /// forgot our session.
    unsent: VecDeque<Request>,
    session_present: bool,
    connected_at: Option<Instant>,
}

/// Whether the link goes on.
enum Next {
    Poll,
    Reconnect(String),
    End,
}

impl Driver {
    async fn run(mut self) {
        loop {
            // Pings make sure that something happens all the time, unless a write hangs in a dead connection.
            let next = match time::timeout(self.silence_max, self.event_loop.poll()).await {
                Ok(Ok(event)) => {
                    let next = self.handle(event);
                    self.hold_back();
                    next
                }
                Ok(Err(error)) => Next::Reconnect(describe(&error)),
                Err(_) => Next::Reconnect("the connection is dead".to_owned()),
            };
            match next {
                Next::Poll => {}
                Next::Reconnect(cause) => {
                    self.lose(cause);
                    time::sleep(self.backoff.pause()).await;
                }
                Next::End => break,
            }
        }
        self.shared().connected.store(false, Ordering::Relaxed);
        self.shared().window.close();
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.outbox.shared
    }

    fn handle(&mut self, event: Event) -> Next {
        match event {
            Event::Incoming(Packet::ConnAck(ack)) => self.resume(ack.session_present),
            Event::Incoming(Packet::SubAck(ack)) => return self.subscribed(&ack),
            Event::Incoming(Packet::Publish(packet)) => self.receive(packet),
            Event::Incoming(Packet::PubAck(_)) => {
                let window = &self.shared().window;
                // An acknowledgement too many, by a confused broker, must not widen the window.
                if window.available_permits() < WINDOW as usize {
                    window.add_permits(1);
                }
            }
            Event::Outgoing(rumqttc::Outgoing::Disconnect) => return Next::End,
            Event::Incoming(_) | Event::Outgoing(_) => {}
        }
        Next::Poll
    }

    /// The broker answered: subscribe first, then send again what it did not acknowledge.
    fn resume(&mut self, session_present: bool) {
        self.session_present = session_present;
        self.event_loop.pending = mem::take(&mut self.unsent);
        for request in &mut self.event_loop.pending {
            if let Request::Publish(packet) = request {
                packet.dup = packet.pkid != 0;
            }
        }
        if self.subscriptions.is_empty() {
            return self.announce();
        }
        // Always, for a session that is present may have lost its subscriptions, and for retained messages.
        let filters =
            self.subscriptions.iter().map(|filter| SubscribeFilter::new(filter.clone(), QoS::AtLeastOnce));
        self.event_loop.pending.push_front(Request::Subscribe(Subscribe::new_many(filters)));
    }

    fn subscribed(&mut self, ack: &SubAck) -> Next {
        let mut codes = self.subscriptions.iter().zip(&ack.return_codes);
        match codes.find(|(_, code)| **code == SubscribeReasonCode::Failure) {
            Some((filter, _)) => Next::Reconnect(format!(
                "the broker refuses the subscription to {filter}; check its access rules"
            )),
            None => {
                self.announce();
                Next::Poll
            }
        }
    }

    fn announce(&mut self) {
        self.connected_at = Some(Instant::now());
        self.shared().connected.store(true, Ordering::Relaxed);
        self.deliver(LinkEvent::Connected { session_present: self.session_present }, 0);
    }

    fn lose(&mut self, cause: String) {
        // What was not acknowledged on this connection will be sent again on the next.
        self.event_loop.state.manual_acks = false;
        self.shared().inbox.forget_held();
        self.event_loop.clean();
        // What arrived before the loss and was not handled yet.
        while let Some(event) = self.event_loop.state.events.pop_front() {
            self.handle(event);
        }
        self.shared().connected.store(false, Ordering::Relaxed);
        // A connection that breaks at once, again and again, is no success.
        if self.connected_at.take().is_some_and(|since| since.elapsed() > backoff::STABLE) {
            self.backoff.reset();
        }

        let mut packets = mem::take(&mut self.event_loop.pending);
        packets.retain(|request| matches!(request, Request::Publish(_)));
        // A packet that waited for its id to become free lies between those in flight and those not sent yet.
        if let Some(packet) = self.event_loop.state.collision.take() {
            let place = packets.iter().position(|request| !has_packet_id(request)).unwrap_or(packets.len());
            packets.insert(place, Request::Publish(Publish { pkid: 0, ..packet }));
        }
        self.unsent.append(&mut packets);
        // Another member of the cluster may be there.
        self.event_loop.mqtt_options = self.members.next();
        self.deliver(LinkEvent::Lost { cause }, 0);
    }

    /// Stops acknowledging while the program does not keep up, and makes good for it afterwards.
    fn hold_back(&mut self) {
        let shared = Arc::clone(self.shared());
        // rumqttc reads and acknowledges several packets at a time: they are handled as they were read.
        if self.event_loop.state.events.is_empty() {
            self.event_loop.state.manual_acks = shared.inbox.full();
        }
        shared.inbox.release(&shared.client);
    }

    fn receive(&mut self, packet: Publish) {
        let shared = Arc::clone(self.shared());
        let bytes = packet.payload.len();
        shared.bytes_down.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.event_loop.state.manual_acks && packet.qos == QoS::AtLeastOnce {
            shared.inbox.hold(packet.pkid);
        }
        // Nothing: somebody removed a retained message.
        if bytes == 0 {
            return;
        }
        let retained = packet.retain;
        let bytes_max = self.limits.message_bytes_max;
        // No message within the limit has so long a packet, however it is cut: it is not even looked at.
        if bytes > bytes_max.saturating_add(PACKET_OVERHEAD_BYTES) {
            return self.malformed(packet.topic, retained, ChunkError::TooLong { bytes, bytes_max }.into());
        }
        let mut receiving = locked(&shared.receiving);
        match receiving.assembler.accept(&packet.topic, &packet.payload, shared.now_ms()) {
            Ok(None) => {
                if !mem::replace(&mut receiving.watched, true) {
                    tokio::spawn(ask_for_missing(self.outbox.clone(), self.resend_after));
                }
            }
            Ok(Some(message)) => match envelope::decode(&message, &self.limits) {
                Ok(Message::Order(Order::Resend(missing)) | Message::Answer(Answer::Resend(missing))) => {
                    self.serve(&packet.topic, missing);
                }
                Ok(decoded) => {
                    let heard = LinkEvent::Message { topic: packet.topic, message: decoded, retained };
                    self.deliver(heard, message.len());
                }
                Err(error) => self.malformed(packet.topic, retained, error.into()),
            },
            Err(error) => self.malformed(packet.topic, retained, error.into()),
        }
    }

    fn malformed(&self, topic: String, retained: bool, error: Malformed) {
        let bytes = topic.len();
        self.deliver(LinkEvent::Malformed { topic, retained, error }, bytes);
    }

    fn deliver(&self, event: LinkEvent, bytes: usize) {
        // Counted with what an empty message costs, so that many of them fill the inbox too.
        let bytes = bytes + size_of::<LinkEvent>();
        self.shared().inbox.add(bytes);
        // If nobody listens any more, the task is about to be ended.
        let _ended = self.events.send((event, bytes));
    }

    fn serve(&self, topic: &str, missing: Missing) {
        let Some((topic, _)) = resend::opposite(topic) else { return };
        let Ok(courier) = Arc::clone(&self.shared().couriers).try_acquire_owned() else { return };
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            // An error means that the link is closed.
            let _closed = outbox.resend(&topic, &missing).await;
            drop(courier);
        });
    }
}

/// Looks after unfinished transfers until there are none.
async fn ask_for_missing(outbox: Outbox, patience: Duration) {
    loop {
        time::sleep(patience / 2).await;
        if outbox.shared.window.is_closed() {
            return;
        }
        // Nobody can answer while the broker is away.
        if !outbox.connected() {
            continue;
        }
        let overdue = {
            let mut receiving = locked(&outbox.shared.receiving);
            let overdue = receiving.assembler.overdue(outbox.shared.now_ms());
            receiving.watched = receiving.assembler.waiting();
            if !receiving.watched {
                return;
            }
            overdue
        };
        for (topic, missing) in overdue {
            if let Some((topic, message)) = resend::request(&topic, missing) {
                // An error means that the link is closed, which is seen above.
                let _closed = outbox.publish(&topic, &message, false).await;
            }
        }
    }
}

fn has_packet_id(request: &Request) -> bool {
    matches!(request, Request::Publish(packet) if packet.pkid != 0)
}

/// rumqttc's errors in words that help.
fn describe(error: &ConnectionError) -> String {
    match error {
        ConnectionError::Io(error) => error.to_string(),
        ConnectionError::NetworkTimeout | ConnectionError::FlushTimeout => "no answer in time".to_owned(),
        ConnectionError::MqttState(StateError::ConnectionAborted) => {
            "the broker closed the connection".to_owned()
        }
        ConnectionError::MqttState(
            StateError::Io(error) | StateError::Deserialization(rumqttc::mqttbytes::Error::Io(error)),
        ) => error.to_string(),
        ConnectionError::MqttState(StateError::AwaitPingResp) => {
            "the broker does not answer pings".to_owned()
        }
        ConnectionError::ConnectionRefused(ConnectReturnCode::BadUserNamePassword) => {
            "the broker refuses the user name or password".to_owned()
        }
        ConnectionError::ConnectionRefused(ConnectReturnCode::NotAuthorized) => {
            "the broker does not authorise this client".to_owned()
        }
        other => other.to_string(),
    }
}
