//! A topic on any MQTT broker: what plugs, gateways and home automation publish.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;

use evenhand_link::{Broker, Tls, plain_options};
use rumqttc::{Client, Connection, ConnectionError, Event, Packet, QoS};
use serde::{Deserialize, Serialize};

use super::json::Fields;
use super::time::TimeFormat;
use super::{PATIENCE, Source, SourceError};
use crate::config::BrokerSection;
use crate::reading::Intake;

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
    messages: Receiver<Result<String, Box<ConnectionError>>>,
    fields: Fields,
    newest_ms: i64,
    malformed: u64,
}

impl Mqtt {
    /// Connects and subscribes as `client_id`.
    pub fn open(
        settings: &MqttSettings,
        broker: &Broker,
        tls: Option<&Tls>,
        client_id: &str,
        newest_ms: Option<i64>,
    ) -> Result<Self, SourceError> {
        let mut options = plain_options(broker, tls, client_id)?;
        options.set_max_packet_size(MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX);
        let (client, connection) = Client::new(options, 8);
        let (sender, messages) = mpsc::sync_channel(WAITING);
        let topic = settings.topic.clone();
        // What the broker kept may be old: without a time of its own it is no reading.
        let kept_too = !settings.time.is_empty();
        thread::Builder::new()
            .name("mqtt source".into())
            .spawn(move || listen(&client, connection, &topic, kept_too, &sender))
            .map_err(SourceError::Thread)?;
        Ok(Self {
            broker: broker.to_string(),
            messages,
            fields: Fields::new(&settings.value, &settings.time, settings.time_format, settings.utc_offset_s),
            newest_ms: newest_ms.unwrap_or(i64::MIN),
            malformed: 0,
        })
    }
}

impl Source for Mqtt {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
        let mut readings = Vec::new();
        while readings.len() < count {
            let message = match readings.is_empty() {
                true => self.messages.recv_timeout(PATIENCE),
                false => self.messages.try_recv().map_err(|_| RecvTimeoutError::Timeout),
            };
            let text = match message {
                Ok(Ok(text)) => text,
                Ok(Err(cause)) => return Err(SourceError::Mqtt { broker: self.broker.clone(), cause }),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(SourceError::Ended),
            };
            match self.fields.reading(&text) {
                Some(reading) if reading.time_ms > self.newest_ms => {
                    self.newest_ms = reading.time_ms;
                    readings.push(reading);
                }
                Some(_) => {}
                None => self.malformed += 1,
            }
        }
        Ok(Intake::Readings(readings))
    }

    fn malformed(&self) -> u64 {
        self.malformed
    }
}

/// Passes messages on until the connection fails or nobody listens.
fn listen(
    client: &Client,
    mut connection: Connection,
    topic: &str,
    kept_too: bool,
    sender: &SyncSender<Result<String, Box<ConnectionError>>>,
) {
    while let Ok(event) = connection.recv() {
        let listened = match event {
            Ok(Event::Incoming(Packet::ConnAck(_))) => client.try_subscribe(topic, QoS::AtLeastOnce).is_ok(),
            Ok(Event::Incoming(Packet::Publish(publish))) => {
                let counts = kept_too || !publish.retain;
                !counts || sender.send(Ok(String::from_utf8_lossy(&publish.payload).into_owned())).is_ok()
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
