//! A topic on any MQTT broker, as plugs, gateways and home automation publish.
#![cfg(feature = "mqtt")]
// Explanations are printed as they stand: names of sections in brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

use std::sync::mpsc::SyncSender;

use evenhand_link::{Broker, Tls, rumqttc_options};
use rumqttc::{Client, Connection, ConnectionError, Event, Packet, Publish, QoS};

use super::background_reader::{BackgroundReader, Fetched};
use super::duplicate_filter::DuplicateFilter;
use super::json::JsonFields;
use super::time::{TimeFormat, TimeReader};
use super::{Acknowledgement, Intake, Source, SourceContext, SourceError, SourceKind};
use crate::config::section::section;
use crate::config::{BrokerLinkConfig, NodeConfig};
use crate::reading::{InputBatch, SourcePosition};
use crate::time_zone::LocalTimeZone;

/// Larger messages are no readings.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Messages that wait to be read before the broker is blocked.
const MESSAGES_MAX: usize = 256;
/// Room for the acknowledgements of all that a broker may send without one.
const REQUESTS_MAX: usize = 1 << 16;

section! {
    /// A topic and the fields of a message.
    pub struct MqttConfig {
        /// The topic.
        pub topic: String = String::new() => "\"tele/plug/SENSOR\"",
        /// Path of the value within a JSON message; "" for a message that is a number.
        pub value: String = String::new() => "\"ENERGY.Power\"",
        /// Path of the time within a JSON message; "" for the time of arrival.
        pub time: String = String::new() => "\"Time\"",
        /// Format of times: "iso", "unix-s", "unix-ms" or "day-first" (31.12.2024 23:45).
        pub time_format: TimeFormat = TimeFormat::Iso,
        /// Time zone of times without an offset, if it is not the window's.
        pub time_zone: Option<LocalTimeZone> = None => "\"Europe/London\"",
        /// Another broker than the federation's, with the same keys as [broker].
        pub broker: Option<BrokerLinkConfig> = None => ["url = \"mqtt://127.0.0.1:1883\""],
    }
}

impl SourceKind for MqttConfig {
    fn check(&self) -> Result<(), String> {
        match rumqttc::valid_filter(&self.topic) {
            true => Ok(()),
            false => Err(format!(
                "source.topic = {:?} is no topic; an example is \"tele/plug/SENSOR\"",
                self.topic
            )),
        }
    }

    fn place(&self) -> String {
        format!("the topic {:?}", self.topic)
    }

    fn open(&self, context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        let NodeConfig { node, broker, .. } = context.config;
        let resolved = match &self.broker {
            Some(section) => section.resolve(None),
            None => broker.resolve(Some(&node.id)),
        };
        let (broker, tls) = resolved.map_err(Box::new)?;
        let side = if context.name == "source" { String::new() } else { format!("-{}", context.name) };
        // Not the name of a side series alone, which may end the name of another node.
        let client_id = format!("evenhand-{}-{}-source{side}", node.federation, node.id);
        let settings =
            MqttConfig { time_zone: Some(context.time_zone(self.time_zone.as_ref())), ..self.clone() };
        // A session that is kept would collect messages for nobody after a probe.
        let keeps_session = !settings.time.is_empty() && context.name != SourceContext::PROBE;
        let source =
            Mqtt::connect(&settings, &broker, tls.as_ref(), &client_id, context.position, keeps_session)?;
        Ok(Box::new(source))
    }

    fn broker(&self) -> Option<&BrokerLinkConfig> {
        self.broker.as_ref()
    }
}

/// A subscription, served by a thread of its own.
pub struct Mqtt {
    broker: String,
    client: Client,
    messages: BackgroundReader<Result<ReceivedMessage, Box<ConnectionError>>>,
    /// Packets that were read and are not acknowledged yet.
    unacknowledged: Vec<u16>,
    fields: JsonFields,
    filter: DuplicateFilter,
    intake: Intake,
    /// The error that ended the connection, for the next read.
    failed: Option<Box<ConnectionError>>,
}

/// One message.
#[derive(Debug)]
struct ReceivedMessage {
    text: String,
    /// Identifier for the acknowledgement; 0 where none is expected.
    packet_id: u16,
    /// A retained message, or one that was not acknowledged before.
    redelivered: bool,
}

impl Mqtt {
    /// Connects and subscribes as `client_id`, and continues after `position`.
    pub fn open(
        settings: &MqttConfig,
        broker: &Broker,
        tls: Option<&Tls>,
        client_id: &str,
        position: SourcePosition,
    ) -> Result<Self, SourceError> {
        Self::connect(settings, broker, tls, client_id, position, !settings.time.is_empty())
    }

    fn connect(
        settings: &MqttConfig,
        broker: &Broker,
        tls: Option<&Tls>,
        client_id: &str,
        position: SourcePosition,
        keeps_session: bool,
    ) -> Result<Self, SourceError> {
        let mut options = rumqttc_options(broker, tls, client_id)?;
        // The broker delivers again what is not in the journal, e.g. after a kill.
        options.set_manual_acks(true);
        // Messages from the node's absence are useful only with a time of their own.
        let timed = !settings.time.is_empty();
        options.set_clean_session(!keeps_session);
        let (client, connection) = Client::new(options, REQUESTS_MAX);
        let topic = settings.topic.clone();
        let listener = client.clone();
        let listen = move |sender| listen(&listener, connection, &topic, timed, &sender);
        let zone = settings.time_zone.clone().unwrap_or_default();
        let times = TimeReader::new(settings.time_format, zone).resumed(position);
        Ok(Self {
            broker: broker.to_string(),
            client,
            unacknowledged: Vec::new(),
            messages: BackgroundReader::start("mqtt source", MESSAGES_MAX, listen)?,
            fields: JsonFields::new(&settings.value, &settings.time, times),
            filter: DuplicateFilter::after(position),
            intake: Intake::default(),
            failed: None,
        })
    }
}

impl Source for Mqtt {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        if let Some(cause) = self.failed.take() {
            return Err(failed(&self.broker, cause));
        }
        let mut readings = Vec::new();
        while readings.len() < count {
            let ReceivedMessage { text, packet_id, redelivered } =
                match self.messages.next(readings.is_empty()) {
                    Fetched::Item(Ok(message)) => message,
                    Fetched::Item(Err(cause)) if readings.is_empty() => {
                        return Err(failed(&self.broker, cause));
                    }
                    Fetched::Item(Err(cause)) => {
                        self.failed = Some(cause);
                        break;
                    }
                    Fetched::Ended if readings.is_empty() => return Err(SourceError::Ended),
                    Fetched::Empty | Fetched::Ended => break,
                };
            self.unacknowledged.extend((packet_id != 0).then_some(packet_id));
            self.filter.expect_duplicates(redelivered);
            let reading = self.fields.reading(&text);
            let reading = self.intake.record(|| text, reading);
            readings.extend(reading.and_then(|reading| self.filter.pass(reading)));
        }
        Ok(InputBatch::Readings(readings))
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }

    fn acknowledgement(&mut self) -> Option<Acknowledgement> {
        let packet_ids = std::mem::take(&mut self.unacknowledged);
        let client = self.client.clone();
        let send = move || packet_ids.into_iter().for_each(|packet_id| acknowledge(&client, packet_id));
        Some(Acknowledgement::new(send))
    }
}

fn failed(broker: &str, cause: Box<ConnectionError>) -> SourceError {
    SourceError::Peer { peer: format!("broker {broker}"), cause }
}

fn acknowledge(client: &Client, packet_id: u16) {
    let packet = Publish { pkid: packet_id, ..Publish::new("", QoS::AtLeastOnce, Vec::new()) };
    // A lost connection needs none: the broker delivers the message again on the next.
    let _gone = client.try_ack(&packet);
}

/// Forwards messages until the connection fails or the receiver is dropped.
fn listen(
    client: &Client,
    mut connection: Connection,
    topic: &str,
    with_retained: bool,
    sender: &SyncSender<Result<ReceivedMessage, Box<ConnectionError>>>,
) {
    while let Ok(event) = connection.recv() {
        let go_on = match event {
            Ok(Event::Incoming(Packet::ConnAck(_))) => client.try_subscribe(topic, QoS::AtLeastOnce).is_ok(),
            Ok(Event::Incoming(Packet::Publish(publish))) if publish.retain && !with_retained => {
                acknowledge(client, publish.pkid);
                true
            }
            Ok(Event::Incoming(Packet::Publish(publish))) => {
                let readable = publish.payload.len() <= MESSAGE_BYTES_MAX;
                let payload = if readable { &publish.payload[..] } else { b"too long to be a reading" };
                let message = ReceivedMessage {
                    text: String::from_utf8_lossy(payload).into_owned(),
                    packet_id: publish.pkid,
                    redelivered: publish.retain || publish.dup,
                };
                sender.send(Ok(message)).is_ok()
            }
            Ok(_) => true,
            Err(error) => {
                let _ = sender.send(Err(Box::new(error)));
                false
            }
        };
        if !go_on {
            return;
        }
    }
}
