//! How each member of the broker's cluster is reached, and whose turn it is.

use std::time::Duration;

use evenhand_protocol::chunk::{PAYLOAD_BYTES_MIN, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::identity::Digest;
use rumqttc::{LastWill, MqttOptions, QoS, TlsConfiguration, Transport};

use crate::options::{LinkOptions, Outgoing};
use crate::{Broker, LinkError, Tls, TlsFiles};

/// Packet ids in use at a time: more than the window, so that a broker may acknowledge out of order.
const PACKET_IDS: u16 = 100;

/// What MQTT adds to a payload at most: the topic, and a few bytes.
pub(crate) const PACKET_OVERHEAD_BYTES: usize = (64 << 10) + 16;

/// The largest packet MQTT knows, and so the largest a broker can deliver.
///
/// A smaller limit would be no protection: rumqttc answers what exceeds it by dropping the connection, and a retained
/// packet would drop the next one as well. What is too long is refused once it is here, one packet at a time; how long
/// packets may be at all is for the broker to say.
const PACKET_BYTES_MAX: usize = 268_435_455;

/// The members of the broker's cluster, and which of them it is the turn of.
pub(crate) struct Members {
    options: Vec<MqttOptions>,
    turn: usize,
}

impl Members {
    /// Clients begin with different members, each always with the same, so that a cluster shares them out.
    pub(crate) fn new(options: &LinkOptions) -> Result<Self, LinkError> {
        let several = options.broker.members().nth(1).is_some();
        let all = options.broker.members().zip(1..).map(|(member, number)| {
            // RabbitMQ keeps even a short-lived session on one member, and refuses its name elsewhere while that
            // member is down.
            let client_id = match several && !options.persistent {
                true => &format!("{}-{number}", options.client_id),
                false => &options.client_id,
            };
            mqtt_options(options, &member, client_id)
        });
        let all: Vec<MqttOptions> = all.collect::<Result<_, _>>()?;
        let turn = usize::from(Digest::of(options.client_id.as_bytes()).0[0]) % all.len();
        Ok(Self { options: all, turn })
    }

    pub(crate) fn current(&self) -> MqttOptions {
        self.options[self.turn].clone()
    }

    pub(crate) fn next(&mut self) -> MqttOptions {
        self.turn = (self.turn + 1) % self.options.len();
        self.current()
    }
}

fn mqtt_options(options: &LinkOptions, member: &Broker, client_id: &str) -> Result<MqttOptions, LinkError> {
    let mut mqtt = plain_options(member, options.tls.as_ref(), client_id)?;
    mqtt.set_clean_session(!options.persistent)
        .set_keep_alive(options.keep_alive.max(Duration::from_secs(1)))
        .set_inflight(PACKET_IDS)
        .set_max_packet_size(
            PACKET_BYTES_MAX,
            options.payload_bytes_max.max(PAYLOAD_BYTES_MIN).saturating_add(PACKET_OVERHEAD_BYTES),
        );
    if let Some(will) = &options.will {
        mqtt.set_last_will(last_will(will, options.payload_bytes_max)?);
    }
    Ok(mqtt)
}

/// How to reach a broker with rumqttc itself: for what is said outside of the federation, e.g. by meters.
///
/// Whatever the broker delivers is received: it is for the caller to refuse what is too long.
pub fn plain_options(broker: &Broker, tls: Option<&Tls>, client_id: &str) -> Result<MqttOptions, LinkError> {
    if client_id.is_empty() {
        return Err(LinkError::ClientId);
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

fn last_will(will: &Outgoing, payload_bytes_max: usize) -> Result<LastWill, LinkError> {
    let transfer = Transfer::new(envelope::encode(&will.message), payload_bytes_max)?;
    match transfer.chunk(0) {
        Some(packet) if transfer.count() == 1 => {
            Ok(LastWill::new(&will.topic, packet, QoS::AtLeastOnce, will.retain))
        }
        _ => Err(LinkError::NotKeepable { topic: will.topic.clone(), chunks: transfer.count() }),
    }
}
