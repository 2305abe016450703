//! Connection options for each endpoint of a broker cluster.

use std::time::Duration;

use evenhand_protocol::chunk::{PAYLOAD_BYTES_MIN, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::identity::Digest;
use evenhand_seal::SealedMessage;
use rumqttc::{LastWill, MqttOptions, QoS, TlsConfiguration, Transport};

use crate::options::LinkOptions;
use crate::{Broker, LinkError, Tls, TlsFiles};

/// Packet ids in use at a time: more than the window, so that a broker may acknowledge out of order.
const PACKET_IDS: u16 = 100;

/// The most that MQTT adds to a payload: the topic, and a few bytes.
pub(crate) const PACKET_OVERHEAD_BYTES: usize = (64 << 10) + 16;

/// The largest packet MQTT knows, and so the largest a broker can deliver.
///
/// A smaller limit would be no protection: rumqttc drops the connection on a larger packet, and a retained one would drop
/// the next connection as well. Packets that are too long are refused after they are received, one at a time; the broker
/// limits how long packets can be at all.
const PACKET_BYTES_MAX: usize = 268_435_455;

/// The endpoints of a broker cluster, and the one in use.
pub(crate) struct Endpoints {
    options: Vec<MqttOptions>,
    current: usize,
    payload_bytes_max: usize,
}

impl Endpoints {
    /// Clients begin with different endpoints, each always with the same, so that they are spread over the cluster.
    pub(crate) fn new(options: &LinkOptions) -> Result<Self, LinkError> {
        let several = options.broker.endpoints().nth(1).is_some();
        let all = options.broker.endpoints().zip(1..).map(|(endpoint, number)| {
            // RabbitMQ binds even a clean session to one cluster member, and refuses its client id elsewhere while that
            // member is down.
            let client_id = match several && !options.persistent {
                true => &format!("{}-{number}", options.client_id),
                false => &options.client_id,
            };
            mqtt_options(options, &endpoint, client_id)
        });
        let all: Vec<MqttOptions> = all.collect::<Result<_, _>>()?;
        let current = usize::from(Digest::of(options.client_id.as_bytes()).0[0]) % all.len();
        Ok(Self { options: all, current, payload_bytes_max: options.payload_bytes_max })
    }

    /// Options with the will of a connection, if it has one of its own.
    pub(crate) fn current(&self, will: Option<&SealedMessage>) -> Result<MqttOptions, LinkError> {
        let mut options = self.options[self.current].clone();
        if let Some(will) = will {
            options.set_last_will(last_will(
                &will.topic,
                will.bytes.clone(),
                will.retain,
                self.payload_bytes_max,
            )?);
        }
        Ok(options)
    }

    /// Moves on to the next endpoint.
    pub(crate) fn advance(&mut self) {
        self.current = (self.current + 1) % self.options.len();
    }
}

fn mqtt_options(options: &LinkOptions, endpoint: &Broker, client_id: &str) -> Result<MqttOptions, LinkError> {
    let mut mqtt = rumqttc_options(endpoint, options.tls.as_ref(), client_id)?;
    mqtt.set_clean_session(!options.persistent)
        .set_keep_alive(options.keep_alive.max(Duration::from_secs(1)))
        .set_inflight(PACKET_IDS)
        .set_max_packet_size(
            PACKET_BYTES_MAX,
            options.payload_bytes_max.max(PAYLOAD_BYTES_MIN).saturating_add(PACKET_OVERHEAD_BYTES),
        );
    if let Some(will) = &options.will {
        let bytes = envelope::encode(&will.message);
        mqtt.set_last_will(last_will(&will.topic, bytes, will.retain, options.payload_bytes_max)?);
    }
    Ok(mqtt)
}

/// Options for rumqttc itself: for messages outside of the federation, e.g. of meters.
///
/// Packets of any length are received: the caller refuses what is too long.
pub fn rumqttc_options(
    broker: &Broker,
    tls: Option<&Tls>,
    client_id: &str,
) -> Result<MqttOptions, LinkError> {
    if client_id.is_empty() {
        return Err(LinkError::EmptyClientId);
    }
    let mut mqtt = MqttOptions::new(client_id, broker.host(), broker.port());
    mqtt.set_max_packet_size(PACKET_BYTES_MAX, PACKET_BYTES_MAX);
    if let Some((user, password)) = broker.credentials() {
        mqtt.set_credentials(user, password);
    }
    if broker.encrypted() {
        let tls = tls.cloned().map_or_else(|| Tls::load(&TlsFiles::default()), Ok)?;
        mqtt.set_transport(Transport::Tls(TlsConfiguration::Rustls(tls.0)));
    }
    Ok(mqtt)
}

fn last_will(
    topic: &str,
    bytes: Vec<u8>,
    retain: bool,
    payload_bytes_max: usize,
) -> Result<LastWill, LinkError> {
    let transfer = Transfer::new(bytes, payload_bytes_max)?;
    match transfer.chunk(0) {
        Some(packet) if transfer.count() == 1 => Ok(LastWill::new(topic, packet, QoS::AtLeastOnce, retain)),
        _ => Err(LinkError::RetainedTooLong { topic: topic.to_owned(), chunks: transfer.count() }),
    }
}
