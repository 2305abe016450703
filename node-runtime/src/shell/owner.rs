//! Owner link: forecasts and standing on a broker at home, with Home Assistant's discovery.

use std::time::Duration;

use evenhand_link::rumqttc_options;
use rumqttc::{AsyncClient, ClientError, Event, EventLoop, LastWill, Packet, QoS};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time;

use super::{NodeError, StatusSnapshot};
use crate::config::{NodeConfig, OwnerConfig};
use crate::source::time::iso_text;

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Requests that wait for the broker at most.
const REQUESTS_MAX: usize = 8;

/// A connection to the owner's broker.
#[derive(Debug)]
pub(super) struct OwnerLink {
    state: watch::Sender<String>,
    task: JoinHandle<()>,
}

impl OwnerLink {
    /// Connects in the background.
    pub(super) fn start(config: &NodeConfig, section: &OwnerConfig) -> Result<Self, NodeError> {
        let (node, federation) = (config.node.id.as_str(), config.node.federation.as_str());
        let base = format!("{}/{federation}/{node}", section.topic);
        let topics = Topics { state: format!("{base}/state"), availability: format!("{base}/availability") };
        let (broker, tls) = section.broker.resolve(None)?;
        let mut options =
            rumqttc_options(&broker, tls.as_ref(), &format!("evenhand-{federation}-{node}-owner"))?;
        options.set_keep_alive(Duration::from_secs(section.broker.keep_alive_s.into()));
        options.set_last_will(LastWill::new(&topics.availability, "offline", QoS::AtLeastOnce, true));
        let (client, events) = AsyncClient::new(options, REQUESTS_MAX);
        let state = watch::Sender::new(String::new());
        let connections = watch::Sender::new(0);
        let publisher = OwnerPublisher {
            client,
            discovery: discovery(section, node, federation, &topics),
            topics,
            connections: connections.subscribe(),
            state: state.subscribe(),
        };
        let task = tokio::spawn(async move {
            let publish = async {
                // An error means that the connection is closed.
                let _ = publisher.run().await;
                std::future::pending::<()>().await;
            };
            // Neither is interrupted by the other: rumqttc would lose what it is about to write.
            tokio::select! {
                () = keep_connected(events, connections) => {}
                () = publish => {}
            }
        });
        Ok(Self { state, task })
    }

    /// Publishes the node's status, if it has changed.
    pub(super) fn publish(&self, status: &StatusSnapshot) {
        let text = state(status).to_string();
        self.state.send_if_modified(|last| {
            let changed = *last != text;
            *last = text;
            changed
        });
    }

    /// Publishes `offline` and disconnects.
    pub(super) async fn close(self, within: Duration) {
        drop(self.state);
        let abort = self.task.abort_handle();
        if time::timeout(within, self.task).await.is_err() {
            abort.abort();
        }
    }
}

#[derive(Debug)]
struct Topics {
    state: String,
    availability: String,
}

/// The state that Home Assistant shows.
fn state(status: &StatusSnapshot) -> Value {
    let account = status.account.as_ref();
    let day_ahead = status.day_ahead.as_ref();
    let overall = day_ahead.and_then(|day_ahead| day_ahead.overall.as_ref());
    json!({
        "forecast": status.forecast.map(|forecast| forecast.value),
        "forecast_for": status.forecast.map(|forecast| iso_text(forecast.for_ms)),
        "mean_absolute_error": status.mean_absolute_error,
        "skill": overall.and_then(|overall| overall.skill),
        "coverage": overall.and_then(|overall| overall.coverage),
        "vector": day_ahead.and_then(|day_ahead| day_ahead.vector.as_ref()),
        "round": status.round,
        "standing": account.map(|account| account.standing),
        "sampling_probability": account.map(|account| account.sampling_probability),
        "staleness": account.map(|account| account.staleness),
    })
}

/// The retained messages by which Home Assistant discovers the node, as (topic, payload).
fn discovery(section: &OwnerConfig, node: &str, federation: &str, topics: &Topics) -> Vec<(String, String)> {
    if section.discovery_prefix.is_empty() {
        return Vec::new();
    }
    // Home Assistant allows no dots in object ids.
    let device = format!("evenhand_{federation}_{node}").replace('.', "_");
    let unit = section.unit.as_str();
    let sensors = [
        ("forecast", "Forecast", unit, "mdi:chart-line"),
        ("mean_absolute_error", "Forecast error", unit, "mdi:plus-minus"),
        ("standing", "Standing", "", "mdi:scale-balance"),
        ("sampling_probability", "Chance to be drawn", "", "mdi:dice-multiple"),
        ("staleness", "Rounds since the last model", "", "mdi:timer-sand"),
        ("round", "Round", "", "mdi:counter"),
    ];
    let message = |(key, name, unit, icon): (&str, &str, &str, &str)| {
        let mut sensor = json!({
            "name": name,
            "unique_id": format!("{device}_{key}"),
            "state_topic": topics.state,
            "value_template": format!("{{{{ value_json.{key} }}}}"),
            "availability_topic": topics.availability,
            "state_class": "measurement",
            "icon": icon,
            "device": {
                "identifiers": [device],
                "name": format!("Evenhand {node}"),
                "manufacturer": "Evenhand",
                "model": "evenhand-node",
                "sw_version": env!("CARGO_PKG_VERSION"),
            },
        });
        if !unit.is_empty() {
            sensor["unit_of_measurement"] = unit.into();
        }
        (format!("{}/sensor/{device}/{key}/config", section.discovery_prefix), sensor.to_string())
    };
    sensors.into_iter().map(message).collect()
}

/// Publishes everything at every connect, and the state whenever it changes.
struct OwnerPublisher {
    client: AsyncClient,
    topics: Topics,
    discovery: Vec<(String, String)>,
    /// Number of connects.
    connections: watch::Receiver<u64>,
    state: watch::Receiver<String>,
}

impl OwnerPublisher {
    async fn run(mut self) -> Result<(), ClientError> {
        loop {
            tokio::select! {
                connected = self.connections.changed() => match connected {
                    Ok(()) => self.announce().await?,
                    Err(_) => return Ok(()),
                },
                changed = self.state.changed() => if changed.is_err() {
                    self.publish(&self.topics.availability, "offline").await?;
                    return self.client.disconnect().await;
                },
            }
            let state = self.state.borrow_and_update().clone();
            if !state.is_empty() && *self.connections.borrow() > 0 {
                self.publish(&self.topics.state, &state).await?;
            }
        }
    }

    async fn announce(&self) -> Result<(), ClientError> {
        for (topic, payload) in &self.discovery {
            self.publish(topic, payload).await?;
        }
        self.publish(&self.topics.availability, "online").await
    }

    async fn publish(&self, topic: &str, payload: &str) -> Result<(), ClientError> {
        self.client.publish(topic, QoS::AtLeastOnce, true, payload).await
    }
}

/// Polls the connection and reconnects; ends after a disconnect by this side.
async fn keep_connected(mut events: EventLoop, connections: watch::Sender<u64>) {
    let mut pause = PAUSE_MIN;
    loop {
        match events.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(_))) => {
                pause = PAUSE_MIN;
                connections.send_modify(|count| *count += 1);
            }
            Ok(Event::Outgoing(rumqttc::Outgoing::Disconnect)) => return,
            Ok(_) => {}
            Err(error) => {
                if pause == PAUSE_MIN {
                    tracing::warn!(%error, "disconnected from the owner's broker; reconnecting");
                }
                time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}
