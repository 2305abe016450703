//! A topic on any MQTT broker: what plugs, gateways and home automation publish.

use std::sync::mpsc::SyncSender;

use evenhand_link::{Broker, Tls, plain_options};
use rumqttc::{Client, Connection, ConnectionError, Event, Packet, QoS};
use serde::{Deserialize, Serialize};

use super::json::Fields;
use super::pump::{Pump, Pumped};
use super::sieve::Sieve;
use super::time::TimeFormat;
use super::{Source, SourceError};
use crate::config::BrokerSection;
use crate::reading::{Intake, Position};

/// Larger messages are no readings.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Messages that wait to be read before the broker is held back.
const WAITING: usize = 256;

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
#[derive(Debug)]
pub struct Mqtt {
    broker: String,
    messages: Pump<Result<Heard, Box<ConnectionError>>>,
    fields: Fields,
    sieve: Sieve,
    /// Why no more will come, once what came before is handed over.
    failed: Option<Box<ConnectionError>>,
}

/// One message.
#[derive(Debug)]
struct Heard {
    text: String,
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
        let mut options = plain_options(broker, tls, client_id)?;
        options.set_max_packet_size(MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX);
        // What was said while the node was away is of use only with a time of its own.
        let timed = !settings.time.is_empty();
        options.set_clean_session(!timed);
        let (client, connection) = Client::new(options, 8);
        let topic = settings.topic.clone();
        let listen = move |sender| listen(&client, connection, &topic, timed, &sender);
        Ok(Self {
            broker: broker.to_string(),
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
            let Heard { text, again } = match self.messages.next(readings.is_empty()) {
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
            self.sieve.expect_known(again);
            readings.extend(self.sieve.pass(self.fields.reading(&text)));
        }
        Ok(Intake::Readings(readings))
    }

    fn malformed(&self) -> u64 {
        self.sieve.malformed()
    }
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
            Ok(Event::Incoming(Packet::Publish(publish))) => {
                let heard = Heard {
                    text: String::from_utf8_lossy(&publish.payload).into_owned(),
                    again: publish.retain || publish.dup,
                };
                let counts = kept_too || !publish.retain;
                !counts || sender.send(Ok(heard)).is_ok()
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
