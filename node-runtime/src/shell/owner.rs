//! What a node tells its owner: forecasts and standing, on a broker at home, where Home Assistant finds them by itself.

use std::time::Duration;

use evenhand_link::rumqttc_options;
use rumqttc::{AsyncClient, ClientError, Event, EventLoop, LastWill, Packet, QoS};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time;

use super::{NodeError, Report};
use crate::config::{Config, OwnerSection};
use crate::source::time::iso_text;

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Messages between us and the broker.
const WAITING: usize = 8;

/// A link to the owner's broker.
#[derive(Debug)]
pub(super) struct Owner {
    state: watch::Sender<String>,
    task: JoinHandle<()>,
}

impl Owner {
    /// Connects in the background.
    pub(super) fn start(config: &Config, section: &OwnerSection) -> Result<Self, NodeError> {
        let (node, federation) = (config.node.id.as_str(), config.node.federation.as_str());
        let base = format!("{}/{federation}/{node}", section.topic);
        let topics = Topics { state: format!("{base}/state"), availability: format!("{base}/availability") };
        let (broker, tls) = section.broker.resolve(None)?;
        let mut options =
            rumqttc_options(&broker, tls.as_ref(), &format!("evenhand-{federation}-{node}-owner"))?;
        options.set_keep_alive(Duration::from_secs(section.broker.keep_alive_s.into()));
        options.set_last_will(LastWill::new(&topics.availability, "offline", QoS::AtLeastOnce, true));
        let (client, events) = AsyncClient::new(options, WAITING);
        let state = watch::Sender::new(String::new());
        let connections = watch::Sender::new(0);
        let speaker = Speaker {
            client,
            introduction: introduction(section, node, federation, &topics),
            topics,
            connections: connections.subscribe(),
            state: state.subscribe(),
        };
        let task = tokio::spawn(async move {
            let speak = async {
                // An error means that the connection is closed for good.
                let _ = speaker.speak().await;
                std::future::pending::<()>().await;
            };
            // Neither is interrupted by the other: rumqttc would lose what it is about to write.
            tokio::select! {
                () = keep_connected(events, connections) => {}
                () = speak => {}
            }
        });
        Ok(Self { state, task })
    }

    /// Tells the owner how the node is doing, if that has changed.
    pub(super) fn tell(&self, report: &Report) {
        let text = state(report).to_string();
        self.state.send_if_modified(|last| {
            let news = *last != text;
            *last = text;
            news
        });
    }

    /// Says that nothing more will come.
    pub(super) async fn leave(self, within: Duration) {
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

/// What Home Assistant shows.
fn state(report: &Report) -> Value {
    let account = report.account.as_ref();
    json!({
        "forecast": report.forecast.map(|forecast| forecast.value),
        "forecast_for": report.forecast.map(|forecast| iso_text(forecast.for_ms)),
        "mean_absolute_error": report.mean_absolute_error,
        "round": report.round,
        "standing": account.map(|account| account.standing),
        "sampling_probability": account.map(|account| account.sampling_probability),
        "staleness": account.map(|account| account.staleness),
    })
}

/// The retained messages by which Home Assistant discovers the node, as (topic, payload).
fn introduction(
    section: &OwnerSection,
    node: &str,
    federation: &str,
    topics: &Topics,
) -> Vec<(String, String)> {
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
    let introduce = |(key, name, unit, icon): (&str, &str, &str, &str)| {
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
    sensors.into_iter().map(introduce).collect()
}

/// Says everything at every connection, and the state whenever it changes.
struct Speaker {
    client: AsyncClient,
    topics: Topics,
    introduction: Vec<(String, String)>,
    /// Counts the connections.
    connections: watch::Receiver<u64>,
    state: watch::Receiver<String>,
}

impl Speaker {
    async fn speak(mut self) -> Result<(), ClientError> {
        loop {
            tokio::select! {
                connected = self.connections.changed() => match connected {
                    Ok(()) => self.introduce().await?,
                    Err(_) => return Ok(()),
                },
                changed = self.state.changed() => if changed.is_err() {
                    self.say(&self.topics.availability, "offline").await?;
                    return self.client.disconnect().await;
                },
            }
            let state = self.state.borrow_and_update().clone();
            if !state.is_empty() && *self.connections.borrow() > 0 {
                self.say(&self.topics.state, &state).await?;
            }
        }
    }

    async fn introduce(&self) -> Result<(), ClientError> {
        for (topic, payload) in &self.introduction {
            self.say(topic, payload).await?;
        }
        self.say(&self.topics.availability, "online").await
    }

    async fn say(&self, topic: &str, payload: &str) -> Result<(), ClientError> {
        self.client.publish(topic, QoS::AtLeastOnce, true, payload).await
    }
}

/// Connects again and again; ends after a goodbye.
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
                    tracing::warn!(%error, "the owner's broker is away; trying again");
                }
                time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}
