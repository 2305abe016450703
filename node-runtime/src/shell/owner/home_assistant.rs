//! Home Assistant's discovery: one retained message for the node as a device with its sensors.

use serde_json::{Map, Value, json};

use super::OwnerTopics;
use super::power_unit::PowerUnit;

/// Steps without a new forecast after which Home Assistant shows none.
const EXPIRE_AFTER_STEPS: u32 = 3;

/// The node as Home Assistant's device.
pub(super) struct DiscoveredDevice<'a> {
    pub(super) federation: &'a str,
    pub(super) node: &'a str,
    /// Unit of the readings.
    pub(super) unit: &'a str,
    /// Length of a step in seconds.
    pub(super) step_s: u32,
    pub(super) topics: &'a OwnerTopics,
}

impl DiscoveredDevice<'_> {
    /// Topic and payload below a discovery prefix.
    pub(super) fn message(&self, prefix: &str) -> (String, String) {
        let id = self.id();
        let version = env!("CARGO_PKG_VERSION");
        let payload = json!({
            "dev": {
                "ids": [id],
                "name": format!("Evenhand {}", self.node),
                "mf": "Evenhand",
                "mdl": "evenhand-node",
                "sw": version,
            },
            "o": { "name": "evenhand-node", "sw": version },
            "cmps": self.components(),
            "state_topic": self.topics.state,
            "availability_topic": self.topics.availability,
            "qos": 1,
        });
        (format!("{prefix}/device/{id}/config"), payload.to_string())
    }

    /// Home Assistant allows no dots in ids.
    fn id(&self) -> String {
        format!("evenhand_{}_{}", self.federation, self.node).replace('.', "_")
    }

    fn components(&self) -> Map<String, Value> {
        let reading = |precision| {
            let mut options =
                json!({ "state_class": "measurement", "suggested_display_precision": precision });
            if !self.unit.is_empty() {
                options["unit_of_measurement"] = self.unit.into();
            }
            if PowerUnit::of(self.unit).is_some() {
                options["device_class"] = "power".into();
            }
            options
        };
        let precision = PowerUnit::of(self.unit).map_or(3, PowerUnit::precision);
        let number = |precision: u8| {
            json!({
                "state_class": "measurement",
                "suggested_display_precision": precision,
                "entity_category": "diagnostic",
            })
        };
        let percent = |precision| with(number(precision), "unit_of_measurement", "%");
        // A forecast arrives on a topic of its own, so that other news do not keep an old one alive.
        let forecast = |options| {
            let options = with(options, "state_topic", self.topics.forecast.as_str());
            with(options, "expire_after", self.step_s.saturating_mul(EXPIRE_AFTER_STEPS))
        };
        let sensors = [
            (
                "forecast",
                "Forecast",
                "mdi:chart-line",
                with(forecast(reading(precision)), "json_attributes_topic", self.topics.forecast.as_str()),
            ),
            (
                "forecast_for",
                "Forecast for",
                "mdi:clock-end",
                forecast(json!({ "device_class": "timestamp" })),
            ),
            ("mean_absolute_error", "Forecast error", "mdi:plus-minus", reading(precision)),
            ("skill_percent", "Skill of the forecast", "mdi:trophy-outline", percent(1)),
            ("coverage_percent", "Readings within the forecast's range", "mdi:target", percent(0)),
            ("standing", "Standing", "mdi:scale-balance", number(4)),
            ("chance_percent", "Chance to be drawn", "mdi:dice-multiple", percent(1)),
            ("staleness", "Rounds since the last model", "mdi:timer-sand", number(0)),
            ("round", "Round", "mdi:counter", number(0)),
        ];
        let id = self.id();
        sensors
            .into_iter()
            .map(|(key, name, icon, options)| {
                let mut sensor = json!({
                    "p": "sensor",
                    "name": name,
                    "unique_id": format!("{id}_{key}"),
                    "value_template": format!("{{{{ value_json.{key} }}}}"),
                    "icon": icon,
                });
                if let (Value::Object(sensor), Value::Object(options)) = (&mut sensor, options) {
                    sensor.extend(options);
                }
                (key.to_owned(), sensor)
            })
            .collect()
    }
}

fn with(mut options: Value, key: &str, value: impl Into<Value>) -> Value {
    options[key] = value.into();
    options
}
