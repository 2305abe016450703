//! A topic on any MQTT broker: what plugs, gateways and home automation publish.

use std::sync::mpsc::SyncSender;

use evenhand_link::{Broker, Tls, rumqttc_options};
use rumqttc::{Client, Connection, ConnectionError, Event, Packet, Publish, QoS};
use serde::{Deserialize, Serialize};

use super::json::Fields;
use super::pump::{Pump, Pumped};
use super::sieve::Sieve;
use super::time::TimeFormat;
use super::{Receipt, Source, SourceError};
use crate::config::BrokerSection;
use crate::reading::{Intake, Position};

/// Larger messages are no readings.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Messages that wait to be read before the broker is held back.
const WAITING: usize = 256;
/// Room for the acknowledgements of all that a broker may send without one.
const REQUESTS_MAX: usize = 1 << 16;

/// Which topic on which broker, and where in a message the reading stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MqttSettings {
    /// The topic.
    pub topic: String,
    /// The path of the value within a JSON message, e.g. `ENERGY.Power`; empty where a message is a plain number.
    pub value: String,
    /// The path of the time within a JSON message; empty where the time of arrival counts.
    pub time: String,
    /// How times are written.
    pub time_format: TimeFormat,
    /// Local time minus UTC, for times without an offset.
    pub utc_offset_s: i32,
    /// The broker; the federation's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker: Option<BrokerSection>,
}

impl MqttSettings {
    /// The first setting that makes no sense, with the remedy.
    pub fn check(&self) -> Result<(), String> {
        match rumqttc::valid_filter(&self.topic) {
            true => Ok(()),
            false => Err(format!(
                "source.topic = {:?} is no topic; an example is \"tele/plug/SENSOR\"",
                self.topic
            )),
        }
    }
}

/// A subscription, served by a thread of its own.
pub struct Mqtt {
    broker: String,
    client: Client,
    messages: Pump<Result<Heard, Box<ConnectionError>>>,
    /// Packets that were read and are acknowledged when what they said is kept.
    unsigned: Vec<u16>,
    fields: Fields,
    sieve: Sieve,
    /// Why no more will come, once what came before is handed over.
    failed: Option<Box<ConnectionError>>,
}

/// One message.
#[derive(Debug)]
struct Heard {
    text: String,
    /// By which it is acknowledged; 0 where nobody waits for it.
    packet_id: u16,
    /// The broker says it again: it kept it, or nobody acknowledged it.
    again: bool,
}

impl Mqtt {
    /// Connects and subscribes as `client_id`, and goes on behind `position`.
    pub fn open(
        settings: &MqttSettings,
        broker: &Broker,
        tls: Option<&Tls>,
        client_id: &str,
        position: Position,
    ) -> Result<Self, SourceError> {
        let mut options = rumqttc_options(broker, tls, client_id)?;
        // The broker says again what the node could not keep, since it was killed for example.
        options.set_manual_acks(true);
        // What was said while the node was away is of use only with a time of its own.
        let timed = !settings.time.is_empty();
        options.set_clean_session(!timed);
        let (client, connection) = Client::new(options, REQUESTS_MAX);
        let topic = settings.topic.clone();
        let listener = client.clone();
        let listen = move |sender| listen(&listener, connection, &topic, timed, &sender);
        Ok(Self {
            broker: broker.to_string(),
            client,
            unsigned: Vec::new(),
            messages: Pump::start("mqtt source", WAITING, listen)?,
            fields: Fields::new(&settings.value, &settings.time, settings.time_format, settings.utc_offset_s),
            sieve: Sieve::behind(position),
            failed: None,
        })
    }
}

impl Source for Mqtt {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
        if let Some(cause) = self.failed.take() {
            return Err(SourceError::Mqtt { broker: self.broker.clone(), cause });
        }
        let mut readings = Vec::new();
        while readings.len() < count {
            let Heard { text, packet_id, again } = match self.messages.next(readings.is_empty()) {
                Pumped::Item(Ok(heard)) => heard,
                Pumped::Item(Err(cause)) if readings.is_empty() => {
                    return Err(SourceError::Mqtt { broker: self.broker.clone(), cause });
                }
                Pumped::Item(Err(cause)) => {
                    self.failed = Some(cause);
                    break;
                }
                Pumped::Over if readings.is_empty() => return Err(SourceError::Ended),
                Pumped::Nothing | Pumped::Over => break,
            };
            self.unsigned.extend((packet_id != 0).then_some(packet_id));
            self.sieve.expect_known(again);
            readings.extend(self.sieve.pass(self.fields.reading(&text)));
        }
        Ok(Intake::Readings(readings))
    }

    fn malformed(&self) -> u64 {
        self.sieve.malformed()
    }

    fn receipt(&mut self) -> Option<Receipt> {
        let packet_ids = std::mem::take(&mut self.unsigned);
        let client = self.client.clone();
        let sign = move || packet_ids.into_iter().for_each(|packet_id| acknowledge(&client, packet_id));
        Some(Receipt::new(sign))
    }
}

fn acknowledge(client: &Client, packet_id: u16) {
    let packet = Publish { pkid: packet_id, ..Publish::new("", QoS::AtLeastOnce, Vec::new()) };
    // A connection that is gone needs none: the broker says it again on the next.
    let _gone = client.try_ack(&packet);
}

/// Passes messages on until the connection fails or nobody listens.
fn listen(
    client: &Client,
    mut connection: Connection,
    topic: &str,
    kept_too: bool,
    sender: &SyncSender<Result<Heard, Box<ConnectionError>>>,
) {
    while let Ok(event) = connection.recv() {
        let listened = match event {
            Ok(Event::Incoming(Packet::ConnAck(_))) => client.try_subscribe(topic, QoS::AtLeastOnce).is_ok(),
            Ok(Event::Incoming(Packet::Publish(publish))) if publish.retain && !kept_too => {
                acknowledge(client, publish.pkid);
                true
            }
            Ok(Event::Incoming(Packet::Publish(publish))) => {
                let readable = publish.payload.len() <= MESSAGE_BYTES_MAX;
                let payload = if readable { &publish.payload[..] } else { b"too long to be a reading" };
                let heard = Heard {
                    text: String::from_utf8_lossy(payload).into_owned(),
                    packet_id: publish.pkid,
                    again: publish.retain || publish.dup,
                };
                sender.send(Ok(heard)).is_ok()
            }
            Ok(_) => true,
            Err(error) => {
                let _ = sender.send(Err(Box::new(error)));
                false
            }
        };
        if !listened {
            return;
        }
    }
}
