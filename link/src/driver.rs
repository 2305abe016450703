//! The task that maintains a link's connection.
//!
//! rumqttc's event loop must not be interrupted between taking a request and writing it, so the task
//! does nothing but poll it and never waits for anything else: received messages go to an unbounded queue,
//! requests that must be answered go to tasks of their own.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use evenhand_protocol::chunk::{Assembler, ChunkError, SentTransfers};
use evenhand_protocol::envelope;
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::{Answer, Message, MissingChunks, Order};
use evenhand_seal::{SEALED_BYTES, SealedMessage};
use rumqttc::{
    AsyncClient, ConnectionError, Event, EventLoop, Packet, Publish, QoS, Request, SubAck, Subscribe,
    SubscribeFilter, SubscribeReasonCode,
};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::time;

use crate::backoff::{self, Backoff};
use crate::cause::{Attempt, BrokerPeer};
use crate::endpoints::{Endpoints, PACKET_OVERHEAD_BYTES};
use crate::events::{Events, LinkEvent, MessageError};
use crate::options::LinkOptions;
use crate::publisher::Publisher;
use crate::sealing::{OpenedBytes, SealEvent, Sealing};
use crate::sealing_tasks::{publish_replies, publish_when_due};
use crate::state::{InboundBacklog, LinkState, RESENDS_MAX, Reassembly, WINDOW, locked};
use crate::{LinkError, resend};

/// Room for the window, for postponed acknowledgements, and a disconnect.
const REQUESTS_MAX: usize = 1 << 16;

/// Time limit for a connection to be made and for a packet to be written: a slow line needs a while for 120 KiB.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn start(options: LinkOptions) -> Result<(Publisher, Events), LinkError> {
    let endpoints = Endpoints::new(&options)?;
    let will = options.sealing.as_ref().and_then(|sealing| sealing.will());
    let (client, mut event_loop) = AsyncClient::new(endpoints.current(will.as_ref())?, REQUESTS_MAX);
    event_loop.network_options.set_tcp_nodelay(true);
    event_loop.network_options.set_connection_timeout(NETWORK_TIMEOUT.as_secs());
    let resend_after_ms = options.resend_after.as_millis() as u64;
    let mut wire_limits = options.limits;
    if options.sealing.is_some() {
        wire_limits.message_bytes_max = wire_limits.message_bytes_max.saturating_add(SEALED_BYTES);
    }
    let state = Arc::new(LinkState {
        client,
        payload_bytes_max: options.payload_bytes_max,
        sealing: options.sealing,
        window: Semaphore::new(WINDOW as usize),
        publishing: AsyncMutex::default(),
        resends: Arc::new(Semaphore::new(RESENDS_MAX)),
        sent: Mutex::new(SentTransfers::new(options.resend_bytes_max)),
        resend_budget: Mutex::default(),
        reassembly: Mutex::new(Reassembly {
            assembler: Assembler::new(wire_limits, resend_after_ms),
            has_task: false,
        }),
        backlog: InboundBacklog::new(options.inbound_bytes_max),
        connected: AtomicBool::new(false),
        bytes_up: AtomicU64::new(0),
        bytes_down: AtomicU64::new(0),
        started: Instant::now(),
        driver: OnceLock::new(),
    });
    let (sender, queue) = mpsc::unbounded_channel();
    let (replies, sealed_replies) = mpsc::unbounded_channel();
    let driver = Driver {
        event_loop,
        endpoints,
        publisher: Publisher { state: Arc::clone(&state) },
        events: sender,
        replies,
        backoff: Backoff::new(&options.client_id),
        subscriptions: options.subscriptions,
        limits: options.limits,
        silence_max: 2 * options.keep_alive + NETWORK_TIMEOUT,
        resend_after: options.resend_after,
        unsent: VecDeque::new(),
        session_present: false,
        connected_at: None,
        short_lived: 0,
    };
    let publisher = driver.publisher.clone();
    if let Some(sealing) = state.sealing.clone() {
        tokio::spawn(publish_replies(publisher.clone(), sealed_replies));
        tokio::spawn(publish_when_due(publisher.clone(), sealing));
    }
    let task = tokio::spawn(driver.run()).abort_handle();
    state.driver.get_or_init(|| task);
    Ok((publisher, Events { broker: options.broker, state, queue, early: VecDeque::new() }))
}

struct Driver {
    event_loop: EventLoop,
    endpoints: Endpoints,
    publisher: Publisher,
    events: UnboundedSender<(LinkEvent, usize)>,
    /// Bytes of the sealing, in their order.
    replies: UnboundedSender<SealedMessage>,
    backoff: Backoff,
    subscriptions: Vec<String>,
    limits: MessageLimits,
    silence_max: Duration,
    resend_after: Duration,
    /// Packets that the broker did not acknowledge before the connection was lost. rumqttc would discard them if the
    /// broker has no session.
    unsent: VecDeque<Request>,
    session_present: bool,
    connected_at: Option<Instant>,
    /// Connections in a row that broke soon after they were made.
    short_lived: u32,
}

/// The next step of the driver.
enum DriverStep {
    Poll,
    Reconnect(String),
    End,
}

impl Driver {
    async fn run(mut self) {
        loop {
            // Pings cause events all the time, unless a write hangs in a dead connection.
            let next = match time::timeout(self.silence_max, self.event_loop.poll()).await {
                Ok(Ok(event)) => {
                    let next = self.handle(event);
                    self.apply_backpressure();
                    next
                }
                Ok(Err(error)) => DriverStep::Reconnect(self.describe(&error)),
                Err(_) => DriverStep::Reconnect(self.peer().sentence("the connection is dead")),
            };
            match next {
                DriverStep::Poll => {}
                DriverStep::Reconnect(cause) => {
                    self.disconnected(cause);
                    time::sleep(self.backoff.next_delay()).await;
                }
                DriverStep::End => break,
            }
        }
        self.state().connected.store(false, Ordering::Relaxed);
        self.state().window.close();
    }

    fn state(&self) -> &Arc<LinkState> {
        &self.publisher.state
    }

    fn handle(&mut self, event: Event) -> DriverStep {
        match event {
            Event::Incoming(Packet::ConnAck(ack)) => self.resume(ack.session_present),
            Event::Incoming(Packet::SubAck(ack)) => return self.subscribed(&ack),
            Event::Incoming(Packet::Publish(packet)) => self.receive(packet),
            Event::Incoming(Packet::PubAck(_)) => {
                let window = &self.state().window;
                // An acknowledgement too many, by a confused broker, must not widen the window.
                if window.available_permits() < WINDOW as usize {
                    window.add_permits(1);
                }
            }
            Event::Outgoing(rumqttc::Outgoing::Disconnect) => return DriverStep::End,
            Event::Incoming(_) | Event::Outgoing(_) => {}
        }
        DriverStep::Poll
    }

    /// Subscribes first, then sends again what the broker did not acknowledge.
    fn resume(&mut self, session_present: bool) {
        self.session_present = session_present;
        self.event_loop.pending = mem::take(&mut self.unsent);
        for request in &mut self.event_loop.pending {
            if let Request::Publish(packet) = request {
                packet.dup = packet.pkid != 0;
            }
        }
        if self.subscriptions.is_empty() {
            return self.report_connected();
        }
        // Always, for a session that is present may have lost its subscriptions, and for retained messages.
        let filters =
            self.subscriptions.iter().map(|filter| SubscribeFilter::new(filter.clone(), QoS::AtLeastOnce));
        self.event_loop.pending.push_front(Request::Subscribe(Subscribe::new_many(filters)));
    }

    fn subscribed(&mut self, ack: &SubAck) -> DriverStep {
        let mut codes = self.subscriptions.iter().zip(&ack.return_codes);
        match codes.find(|(_, code)| **code == SubscribeReasonCode::Failure) {
            Some((filter, _)) => DriverStep::Reconnect(self.peer().sentence(&format!(
                "the broker refuses the subscription to {filter}; check its access rules, and that this program's name and \
                 federation are those in them"
            ))),
            None => {
                self.report_connected();
                DriverStep::Poll
            }
        }
    }

    fn report_connected(&mut self) {
        self.connected_at = Some(Instant::now());
        self.state().connected.store(true, Ordering::Relaxed);
        self.deliver(LinkEvent::Connected { session_present: self.session_present }, 0);
        if let Some(sealing) = &self.state().sealing {
            self.reply(sealing.connected(self.state().now_ms()));
        }
    }

    fn peer(&self) -> BrokerPeer {
        BrokerPeer::of(&self.event_loop.mqtt_options)
    }

    /// The sentence for an error; counts connections that break soon after they were made.
    fn describe(&mut self, error: &ConnectionError) -> String {
        if self.connected_at.is_some_and(|since| since.elapsed() <= backoff::STABLE_AFTER) {
            self.short_lived += 1;
        }
        let established = self.connected_at.is_some();
        self.peer().describe(error, Attempt { established, short_lived: self.short_lived })
    }

    fn disconnected(&mut self, cause: String) {
        // Packets not acknowledged on this connection will be delivered again on the next.
        self.event_loop.state.manual_acks = false;
        self.state().backlog.drop_postponed();
        self.event_loop.clean();
        // Packets that arrived before and were not handled yet.
        while let Some(event) = self.event_loop.state.events.pop_front() {
            self.handle(event);
        }
        self.state().connected.store(false, Ordering::Relaxed);
        // A connection that breaks at once, again and again, is no success.
        if self.connected_at.take().is_some_and(|since| since.elapsed() > backoff::STABLE_AFTER) {
            self.backoff.reset();
            self.short_lived = 0;
        }

        let mut packets = mem::take(&mut self.event_loop.pending);
        packets.retain(|request| matches!(request, Request::Publish(_)));
        // A packet that waited for its id to become free lies between those in flight and those not sent yet.
        if let Some(packet) = self.event_loop.state.collision.take() {
            let place = packets.iter().position(|request| !has_packet_id(request)).unwrap_or(packets.len());
            packets.insert(place, Request::Publish(Publish { pkid: 0, ..packet }));
        }
        self.unsent.append(&mut packets);
        // Another member of the cluster may be reachable.
        self.endpoints.advance();
        let will = self.state().sealing.as_ref().and_then(|sealing| {
            sealing.disconnected();
            sealing.will()
        });
        match self.endpoints.current(will.as_ref()) {
            Ok(options) => self.event_loop.mqtt_options = options,
            // The will of the start was as long.
            Err(error) => tracing::error!(%error, "no options for the next connection"),
        }
        self.deliver(LinkEvent::Disconnected { cause }, 0);
    }

    /// Stops acknowledging while the program does not keep up; acknowledges afterwards.
    fn apply_backpressure(&mut self) {
        let state = Arc::clone(self.state());
        // rumqttc reads and acknowledges several packets at a time: they are handled as they were read.
        if self.event_loop.state.events.is_empty() {
            self.event_loop.state.manual_acks = state.backlog.is_full();
        }
        state.backlog.acknowledge(&state.client);
    }

    fn receive(&mut self, packet: Publish) {
        let state = Arc::clone(self.state());
        let bytes = packet.payload.len();
        state.bytes_down.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.event_loop.state.manual_acks && packet.qos == QoS::AtLeastOnce {
            state.backlog.postpone(packet.pkid);
        }
        // An empty payload removes a retained message.
        if bytes == 0 {
            return;
        }
        let retained = packet.retain;
        let bytes_max = self.limits.message_bytes_max;
        // No message within the limit has so long a packet, however it is cut: it is not parsed.
        if bytes > bytes_max.saturating_add(PACKET_OVERHEAD_BYTES) {
            return self.malformed(packet.topic, retained, ChunkError::TooLong { bytes, bytes_max }.into());
        }
        let mut reassembly = locked(&state.reassembly);
        match reassembly.assembler.accept(&packet.topic, &packet.payload, state.now_ms()) {
            Ok(None) => {
                if !mem::replace(&mut reassembly.has_task, true) {
                    tokio::spawn(request_missing(self.publisher.clone(), self.resend_after));
                }
            }
            Ok(Some(message)) => match &state.sealing {
                None => self.decode(packet.topic, &message, retained),
                Some(sealing) => self.open(&**sealing, packet.topic, &message, retained),
            },
            Err(error) => self.malformed(packet.topic, retained, error.into()),
        }
    }

    fn decode(&self, topic: String, message: &[u8], retained: bool) {
        match envelope::decode(message, &self.limits) {
            Ok(Message::Order(Order::Resend(missing)) | Message::Answer(Answer::Resend(missing))) => {
                self.resend(&topic, missing);
            }
            Ok(decoded) => {
                let event = LinkEvent::Message { topic, message: decoded, retained };
                self.deliver(event, message.len());
            }
            Err(error) => {
                let bytes = topic.len();
                self.deliver(LinkEvent::Malformed { topic, retained, error: error.into() }, bytes);
            }
        }
    }

    fn reply(&self, replies: Vec<SealedMessage>) {
        for reply in replies {
            // The receiver ends with this task.
            let _ended = self.replies.send(reply);
        }
    }

    fn open(&self, sealing: &dyn Sealing, topic: String, bytes: &[u8], retained: bool) {
        let OpenedBytes { replies, outcome } = sealing.open(&topic, bytes, self.state().now_ms());
        self.reply(replies);
        match outcome {
            None => {}
            Some(Ok(SealEvent::Message(message))) => self.decode(topic, &message, retained),
            Some(Ok(SealEvent::Secured { learnt })) => self.deliver(LinkEvent::Secured { learnt }, 0),
            Some(Ok(SealEvent::Rejected(rejection))) => self.deliver(LinkEvent::Rejected(rejection), 0),
            Some(Err(error)) => self.malformed(topic, retained, error.into()),
        }
    }

    /// Bytes that are no message, or with sealing, that nobody vouches for.
    fn malformed(&self, topic: String, retained: bool, error: MessageError) {
        let bytes = topic.len();
        let event = match self.state().sealing {
            Some(_) => LinkEvent::Refused { topic, retained, error },
            None => LinkEvent::Malformed { topic, retained, error },
        };
        self.deliver(event, bytes);
    }

    fn deliver(&self, event: LinkEvent, bytes: usize) {
        // The size of an event counts too, so that many empty messages fill the backlog.
        let bytes = bytes + size_of::<LinkEvent>();
        self.state().backlog.add(bytes);
        // If the receiver is dropped, this task is about to be aborted.
        let _ended = self.events.send((event, bytes));
    }

    fn resend(&self, topic: &str, missing: MissingChunks) {
        let Some((topic, _)) = resend::reply_topic(topic) else { return };
        let Ok(permit) = Arc::clone(&self.state().resends).try_acquire_owned() else { return };
        let publisher = self.publisher.clone();
        tokio::spawn(async move {
            // An error means that the link is closed.
            let _closed = publisher.resend(&topic, &missing).await;
            drop(permit);
        });
    }
}

/// Requests the missing chunks of incomplete transfers until there are none.
async fn request_missing(publisher: Publisher, resend_after: Duration) {
    loop {
        time::sleep(resend_after / 2).await;
        if publisher.state.window.is_closed() {
            return;
        }
        // Nobody can answer while the link is disconnected.
        if !publisher.connected() {
            continue;
        }
        let overdue = {
            let mut reassembly = locked(&publisher.state.reassembly);
            let overdue = reassembly.assembler.overdue(publisher.state.now_ms());
            reassembly.has_task = reassembly.assembler.has_incomplete();
            if !reassembly.has_task {
                return;
            }
            overdue
        };
        for (topic, missing) in overdue {
            if let Some((topic, message)) = resend::request(&topic, missing) {
                // An error means that the link is closed, which is checked above.
                let _closed = publisher.publish(&topic, &message, false).await;
            }
        }
    }
}

fn has_packet_id(request: &Request) -> bool {
    matches!(request, Request::Publish(packet) if packet.pkid != 0)
}
