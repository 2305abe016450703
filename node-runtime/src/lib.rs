//! The node of an Evenhand federation: reads a meter, trains, forecasts.
//!
//! [`core`] decides; [`source`] and [`window`] supply its data; [`prepared`] computes; a driver carries out what it wants:
//! [`shell`] over MQTT, [`inline`] within the simulated fleet.

pub mod command;
pub mod config;
pub mod core;
pub mod inline;
pub mod journal;
pub mod model_cache;
pub mod prepared;
pub mod reading;
pub mod shell;
pub mod source;
pub mod window;
