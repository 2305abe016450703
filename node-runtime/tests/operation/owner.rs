//! Messages on the owner's broker, as Home Assistant reads them.

use std::collections::BTreeMap;

use evenhand_link::rumqttc_options;
use rumqttc::{AsyncClient, Event, EventLoop, Packet, QoS};
use serde_json::Value;

use super::*;
use crate::support::coordinator::ScriptedCoordinator;

/// Somebody who listens to everything, as Home Assistant does.
struct OwnerListener {
    _client: AsyncClient,
    events: EventLoop,
    received: BTreeMap<String, String>,
}

impl OwnerListener {
    async fn connect(broker: &Mosquitto) -> Self {
        let mut options = rumqttc_options(&broker.broker(), None, "home-assistant").unwrap();
        options.set_max_packet_size(1 << 20, 1 << 20);
        let (client, events) = AsyncClient::new(options, 8);
        client.subscribe("homeassistant/#", QoS::AtLeastOnce).await.unwrap();
        client.subscribe("evenhand/owner/#", QoS::AtLeastOnce).await.unwrap();
        Self { _client: client, events, received: BTreeMap::new() }
    }

    /// Listens until `enough`.
    async fn until(&mut self, enough: impl Fn(&BTreeMap<String, String>) -> bool) {
        while !enough(&self.received) {
            if let Event::Incoming(Packet::Publish(publish)) = self.events.poll().await.unwrap() {
                self.received.insert(publish.topic, String::from_utf8(publish.payload.to_vec()).unwrap());
            }
        }
    }

    fn payload(received: &BTreeMap<String, String>, topic: &str) -> Value {
        received.get(topic).map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
    }
}

const DISCOVERY: &str = "homeassistant/device/evenhand_town_m1/config";
const AVAILABILITY: &str = "evenhand/owner/town/m1/availability";
const STATE: &str = "evenhand/owner/town/m1/state";
const FORECAST: &str = "evenhand/owner/town/m1/forecast";

#[tokio::test]
async fn home_assistant_discovers_the_node_and_its_forecasts_follow() {
    // The federation's broker and the one at home are two.
    let (broker, mut home) = (Mosquitto::start(), Mosquitto::start());
    let folder = tempfile::tempdir().unwrap();
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let owner = format!("[owner]\nunit = \"kW\"\n[owner.broker]\nurl = \"{}\"\n", home.url());
    let node = start(&broker, folder.path(), "", &owner);
    coordinator.welcome().await;

    let mut listener = OwnerListener::connect(&home).await;
    listener.until(|received| received.contains_key(DISCOVERY)).await;
    let device: Value = serde_json::from_str(&listener.received[DISCOVERY]).unwrap();
    assert_eq!(device["dev"]["ids"][0], "evenhand_town_m1");
    assert_eq!(device["availability_topic"], AVAILABILITY);
    assert_eq!(device["state_topic"], STATE);
    let forecast = &device["cmps"]["forecast"];
    assert_eq!(forecast["state_topic"], FORECAST);
    assert_eq!(
        (&forecast["unit_of_measurement"], &forecast["device_class"]),
        (&"kW".into(), &"power".into())
    );
    listener.until(|received| received.get(AVAILABILITY).is_some_and(|text| text == "online")).await;

    let weights = coordinator.model.initial_weights();
    coordinator.train(1, &weights, true).await;
    listener.until(|received| OwnerListener::payload(received, FORECAST)["forecast"].is_f64()).await;
    assert!(
        OwnerListener::payload(&listener.received, FORECAST)["forecast_for"]
            .as_str()
            .unwrap()
            .starts_with("2024-01-01T10:")
    );
    coordinator.train(2, &weights, false).await;
    listener.until(|received| OwnerListener::payload(received, STATE)["mean_absolute_error"].is_f64()).await;

    // The broker at home loses everything; it is published again.
    home.kill();
    home.restart();
    let mut again = OwnerListener::connect(&home).await;
    again
        .until(|received| received.len() == 4 && OwnerListener::payload(received, STATE)["round"] == 2)
        .await;

    node.terminate();
    again.until(|received| received[AVAILABILITY] == "offline").await;
    assert!(node.wait().0.success());
}
