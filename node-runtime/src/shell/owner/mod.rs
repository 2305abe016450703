//! Owner link: forecasts and standing on a broker at home, with Home Assistant's discovery.

mod home_assistant;
mod influx;
mod payload;
mod power_unit;
#[cfg(test)]
mod tests;

use std::time::Duration;

use evenhand_link::rumqttc_options;
use rumqttc::{AsyncClient, ClientError, Event, EventLoop, LastWill, Packet, QoS};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time;

use self::home_assistant::DiscoveredDevice;
use super::{NodeError, StatusSnapshot};
use crate::config::{NodeConfig, OwnerConfig};

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Requests that wait for the broker at most.
const REQUESTS_MAX: usize = 8;

/// A connection to the owner's broker.
#[derive(Debug)]
pub(super) struct OwnerLink {
    federation: String,
    node: String,
    unit: String,
    has_influx: bool,
    messages: watch::Sender<OwnerMessages>,
    task: JoinHandle<()>,
}

/// The newest payloads; empty ones are not published.
#[derive(Debug, Clone, Default, PartialEq)]
struct OwnerMessages {
    state: String,
    forecast: String,
    influx: String,
}

impl OwnerLink {
    /// Connects in the background.
    pub(super) fn start(config: &NodeConfig, section: &OwnerConfig) -> Result<Self, NodeError> {
        let (node, federation) = (config.node.id.as_str(), config.node.federation.as_str());
        let topics = OwnerTopics::below(&format!("{}/{federation}/{node}", section.topic));
        let (broker, tls) = section.broker.resolve(None)?;
        let mut options =
            rumqttc_options(&broker, tls.as_ref(), &format!("evenhand-{federation}-{node}-owner"))?;
        options.set_keep_alive(Duration::from_secs(section.broker.keep_alive_s.into()));
        options.set_last_will(LastWill::new(&topics.availability, "offline", QoS::AtLeastOnce, true));
        let (client, events) = AsyncClient::new(options, REQUESTS_MAX);
        let messages = watch::Sender::new(OwnerMessages::default());
        let connections = watch::Sender::new(0);
        let publisher = OwnerPublisher {
            client,
            discovery: discovery(config, section, &topics),
            topics,
            connections: connections.subscribe(),
            messages: messages.subscribe(),
            published: OwnerMessages::default(),
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
        Ok(Self {
            federation: federation.to_owned(),
            node: node.to_owned(),
            unit: section.unit.clone(),
            has_influx: section.influx,
            messages,
            task,
        })
    }

    /// Publishes the node's status and its forecast of the next steps, as far as they have changed.
    ///
    /// Of a node without day-ahead forecasts it is the forecast of one step.
    pub(super) fn publish(&self, status: &StatusSnapshot) {
        let day_ahead = status.day_ahead.as_ref().and_then(|day_ahead| day_ahead.vector.as_ref());
        let forecast = match day_ahead {
            Some(vector) => Some(payload::day_ahead(vector, &self.unit)),
            None => status.forecast.as_ref().map(payload::next_step),
        };
        let next = OwnerMessages {
            state: payload::state(status).to_string(),
            forecast: forecast.map_or_else(String::new, |payload| payload.to_string()),
            influx: day_ahead
                .filter(|_| self.has_influx)
                .map_or_else(String::new, |vector| influx::lines(&self.federation, &self.node, vector)),
        };
        self.messages.send_if_modified(|last| {
            let changed = *last != next;
            *last = next;
            changed
        });
    }

    /// Publishes `offline` and disconnects.
    pub(super) async fn close(self, within: Duration) {
        drop(self.messages);
        let abort = self.task.abort_handle();
        if time::timeout(within, self.task).await.is_err() {
            abort.abort();
        }
    }
}

#[derive(Debug)]
struct OwnerTopics {
    state: String,
    forecast: String,
    influx: String,
    availability: String,
}

impl OwnerTopics {
    fn below(base: &str) -> Self {
        let topic = |last: &str| format!("{base}/{last}");
        Self {
            state: topic("state"),
            forecast: topic("forecast"),
            influx: topic("influx"),
            availability: topic("availability"),
        }
    }
}

/// The retained message by which Home Assistant discovers the node, as (topic, payload).
fn discovery(config: &NodeConfig, section: &OwnerConfig, topics: &OwnerTopics) -> Option<(String, String)> {
    let device = DiscoveredDevice {
        federation: config.node.federation.as_str(),
        node: config.node.id.as_str(),
        unit: &section.unit,
        step_s: config.window.step_s,
        topics,
    };
    (!section.discovery_prefix.is_empty()).then(|| device.message(&section.discovery_prefix))
}

/// Publishes everything at every connect, and each message whenever it changes.
struct OwnerPublisher {
    client: AsyncClient,
    topics: OwnerTopics,
    discovery: Option<(String, String)>,
    /// Number of connects.
    connections: watch::Receiver<u64>,
    messages: watch::Receiver<OwnerMessages>,
    /// Published in this connection.
    published: OwnerMessages,
}

impl OwnerPublisher {
    async fn run(mut self) -> Result<(), ClientError> {
        loop {
            tokio::select! {
                connected = self.connections.changed() => match connected {
                    Ok(()) => self.announce().await?,
                    Err(_) => return Ok(()),
                },
                changed = self.messages.changed() => if changed.is_err() {
                    self.publish(&self.topics.availability, "offline", true).await?;
                    return self.client.disconnect().await;
                },
            }
            let newest = self.messages.borrow_and_update().clone();
            if *self.connections.borrow() > 0 {
                self.update(newest).await?;
            }
        }
    }

    async fn announce(&mut self) -> Result<(), ClientError> {
        self.published = OwnerMessages::default();
        if let Some((topic, payload)) = &self.discovery {
            self.publish(topic, payload, true).await?;
        }
        self.publish(&self.topics.availability, "online", true).await
    }

    /// Publishes what differs from the messages of this connection so far.
    async fn update(&mut self, newest: OwnerMessages) -> Result<(), ClientError> {
        let OwnerTopics { state, forecast, influx, .. } = &self.topics;
        let last = &self.published;
        // Lines with a time of their own are history, not the present state: they are not retained.
        for (topic, last, newest, retain) in [
            (state, &last.state, &newest.state, true),
            (forecast, &last.forecast, &newest.forecast, true),
            (influx, &last.influx, &newest.influx, false),
        ] {
            if !newest.is_empty() && last != newest {
                self.publish(topic, newest, retain).await?;
            }
        }
        self.published = newest;
        Ok(())
    }

    async fn publish(&self, topic: &str, payload: &str, retain: bool) -> Result<(), ClientError> {
        self.client.publish(topic, QoS::AtLeastOnce, retain, payload).await
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
