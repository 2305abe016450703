#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::home_assistant::DiscoveredDevice;
use super::{OwnerTopics, influx, payload};
use crate::forecast::{ForecastVector, QUANTILES};

/// Two steps of a quarter of an hour after 2024-01-08T09:15:00Z.
fn forecast() -> ForecastVector {
    ForecastVector {
        issued_ms: 1_704_705_300_000,
        step_s: 900,
        levels: QUANTILES,
        values: vec![[0.1, 0.4126, 0.9], [0.2, 0.5, 1.0]],
    }
}

fn discovery(unit: &str) -> (String, Value) {
    let topics = OwnerTopics::below("evenhand/owner/town/m.1");
    let device = DiscoveredDevice { federation: "town", node: "m.1", unit, step_s: 900, topics: &topics };
    let (topic, payload) = device.message("homeassistant");
    (topic, serde_json::from_str(&payload).unwrap())
}

/// One message a device, as Home Assistant's device-based discovery asks for it.
#[test]
fn discovery_describes_the_device_and_its_sensors() {
    let (topic, device) = discovery("kW");
    assert_eq!(topic, "homeassistant/device/evenhand_town_m_1/config");
    assert_eq!(device["dev"]["ids"], json!(["evenhand_town_m_1"]));
    assert_eq!(device["o"]["name"], "evenhand-node");
    assert_eq!(device["state_topic"], "evenhand/owner/town/m.1/state");
    assert_eq!(device["availability_topic"], "evenhand/owner/town/m.1/availability");
    let sensors = device["cmps"].as_object().unwrap();
    assert_eq!(sensors.len(), 9);
    for (key, sensor) in sensors {
        assert_eq!(sensor["p"], "sensor", "{key}");
        assert_eq!(sensor["unique_id"], format!("evenhand_town_m_1_{key}"));
        assert_eq!(sensor["value_template"], format!("{{{{ value_json.{key} }}}}"));
    }
    let forecast = &sensors["forecast"];
    assert_eq!(
        json!([
            forecast["device_class"],
            forecast["unit_of_measurement"],
            forecast["suggested_display_precision"],
            forecast["expire_after"],
            forecast["entity_category"]
        ]),
        json!(["power", "kW", 3, 2700, null])
    );
    let topic = "evenhand/owner/town/m.1/forecast";
    assert_eq!(
        (&forecast["state_topic"], &forecast["json_attributes_topic"]),
        (&topic.into(), &topic.into())
    );
    assert_eq!(sensors["forecast_for"]["device_class"], "timestamp");
    assert!(sensors["forecast_for"]["state_class"].is_null(), "a timestamp is no measurement");
    for key in ["chance_percent", "skill_percent", "coverage_percent"] {
        assert_eq!(sensors[key]["unit_of_measurement"], "%", "{key}");
    }
    for key in ["standing", "chance_percent", "skill_percent", "coverage_percent", "staleness", "round"] {
        assert_eq!(sensors[key]["entity_category"], "diagnostic", "{key}");
    }
}

/// Home Assistant refuses a device class whose unit it does not know.
#[test]
fn only_units_of_power_have_that_class() {
    assert_eq!(discovery("W").1["cmps"]["forecast"]["suggested_display_precision"], 0);
    for unit in ["kWh", "m³/h", ""] {
        let (_, device) = discovery(unit);
        assert!(device["cmps"]["forecast"]["device_class"].is_null(), "{unit}");
        assert!(payload::day_ahead(&forecast(), unit)["watts"].is_null(), "{unit}");
    }
    assert!(discovery("").1["cmps"]["forecast"]["unit_of_measurement"].is_null());
}

#[test]
fn the_forecast_has_all_steps_and_quantiles() {
    assert_eq!(
        payload::day_ahead(&forecast(), "kW"),
        json!({
            "forecast": 0.4126,
            "forecast_for": "2024-01-08T09:30:00Z",
            "start": "2024-01-08T09:15:00Z",
            "step_s": 900,
            "unit": "kW",
            "levels": [0.1, 0.5, 0.9],
            "p10": [0.1, 0.2],
            "p50": [0.4126, 0.5],
            "p90": [0.9, 1.0],
            "watts": { "2024-01-08T09:15:00Z": 413, "2024-01-08T09:30:00Z": 500 },
        })
    );
    let empty = ForecastVector { values: vec![], ..forecast() };
    assert!(payload::day_ahead(&empty, "kW")["forecast"].is_null());
    let unknown = ForecastVector { values: vec![[f32::NAN; 3]], ..forecast() };
    assert_eq!(payload::day_ahead(&unknown, "")["p50"], json!([null]));
}

/// EMHASS takes an object of times and watts; evcc a list of steps that its recipe makes of it.
#[test]
fn recipes_use_attributes_that_exist() {
    let recipe = |name: &str| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/recipes/");
        std::fs::read_to_string(format!("{path}{name}")).unwrap()
    };
    let payload = payload::day_ahead(&forecast(), "kW");
    let after = |text: &str, before: &str| -> Vec<String> {
        let name =
            |rest: &str| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
        text.split(before).skip(1).map(name).collect()
    };
    let (emhass, evcc) =
        (after(&recipe("emhass.yaml"), "_forecast', '"), after(&recipe("evcc.yaml"), ".attributes."));
    assert_eq!((emhass.len(), evcc.len()), (2, 2));
    for attribute in emhass.iter().chain(&evcc) {
        assert!(!payload[attribute].is_null(), "the forecast has no attribute `{attribute}`");
    }
    let topic = OwnerTopics::below("evenhand/owner/+/+").influx;
    assert!(recipe("telegraf.conf").contains(&format!("\"{topic}\"")));
    for (time, watts) in payload["watts"].as_object().unwrap() {
        assert!(time.len() == 20 && time.ends_with('Z') && watts.is_i64(), "{time}: {watts}");
    }
}

#[test]
fn influx_lines_have_a_time_and_a_field_for_each_quantile() {
    assert_eq!(
        influx::lines("town", "m1", &forecast()),
        "evenhand_forecast,federation=town,node=m1 p10=0.1,p50=0.4126,p90=0.9 1704706200000000000\n\
         evenhand_forecast,federation=town,node=m1 p10=0.2,p50=0.5,p90=1 1704707100000000000\n"
    );
    let unknown =
        ForecastVector { values: vec![[f32::NAN, 0.5, f32::INFINITY], [f32::NAN; 3]], ..forecast() };
    assert_eq!(
        influx::lines("town", "m1", &unknown),
        "evenhand_forecast,federation=town,node=m1 p50=0.5 1704706200000000000\n"
    );
}
