//! The node of an Evenhand federation: reads a meter, trains on request, forecasts.
//!
//! | module | content |
//! |---|---|
//! | [`core`] | the state machine: [`Node::step`](core::Node::step) turns inputs into effects, without I/O or clock |
//! | [`source`], [`reading`] | sources of readings, one file each |
//! | [`forecast`] | day-ahead forecasts: naive profile, rows for the model, mixture of experts, skill |
//! | [`window`] | readings as samples: steps, normalisation, calendar |
//! | [`time_zone`] | local time, by the database within the program |
//! | [`model_cache`], [`prepared`] | models by digest, prepared once for training and forecasting |
//! | [`privacy`] | noise on what is sent, and the account of what it costs |
//! | [`shell`] | a driver over MQTT, with a state folder and a training pool |
//! | [`inline`] | a driver on the caller's thread, for simulations |
//! | [`config`], [`command`] | the configuration file and the command line |
//! | [`journal`] | the format of the journal |
//!
//! # A driver
//!
//! A driver passes inputs to the state machine and carries out its effects in order. This one has no broker and no disk:
//!
//! ```
//! use std::collections::VecDeque;
//! use std::time::Instant;
//!
//! use evenhand_node::config::PrivacyConfig;
//! use evenhand_node::core::{GraphOutcome, Node, NodeEffect, NodeInput, NodeSettings, OrderLimits};
//! use evenhand_node::model_cache::ModelCache;
//! use evenhand_node::privacy::NoiseSeed;
//! use evenhand_node::reading::{InputBatch, Reading};
//! use evenhand_node::window::{SeriesConfig, WindowSettings};
//! use evenhand_protocol::identity::FederationId;
//! use evenhand_protocol::message::Declined;
//! use evenhand_protocol::tick::Tick;
//!
//! let settings = NodeSettings {
//!     federation: FederationId::new("town")?,
//!     token: None,
//!     software: "example".into(),
//!     window: WindowSettings::Series(SeriesConfig::default()),
//!     side_series: Vec::new(),
//!     paced_by_rounds: false,
//!     forecasts: true,
//!     parameters_max: 1_000_000,
//!     order_limits: OrderLimits::default(),
//!     privacy: PrivacyConfig::default(),
//!     noise_seed: NoiseSeed::from_system()?,
//!     seed: 0,
//! };
//! let (mut node, models, clock) = (Node::new(settings, 1), ModelCache::default(), Instant::now());
//! let reading = Reading { time_ms: 1_704_067_200_000, value: 0.4 };
//! let data = NodeInput::Data(InputBatch::Readings(vec![reading]));
//! let mut inputs = VecDeque::from([NodeInput::Started, NodeInput::Connected, data]);
//! let (mut published, mut journal) = (Vec::new(), Vec::new());
//! while let Some(input) = inputs.pop_front() {
//!     let now = Tick(clock.elapsed().as_millis() as u64);
//!     for effect in node.step(now, input) {
//!         match effect {
//!             NodeEffect::Publish { channel, message, .. } => published.push((channel, message)),
//!             NodeEffect::FindGraph(digest) | NodeEffect::LoadGraph { digest, .. } => {
//!                 let found = models.find(digest);
//!                 let outcome = found.map_or(GraphOutcome::Absent, |model| GraphOutcome::Ready(model.info()));
//!                 inputs.push_back(NodeInput::Graph { digest, outcome });
//!             }
//!             NodeEffect::Train(job) => {
//!                 let trained = models.find(job.graph).and_then(|model| model.train(&job, || false).ok()?);
//!                 let outcome = trained.ok_or(Declined::TrainingFailed);
//!                 inputs.push_back(NodeInput::Trained { job_id: job.id, outcome });
//!             }
//!             NodeEffect::TrainPersonal(job) => {
//!                 let weights = models.find(job.graph).and_then(|model| model.train_personal(&job).ok());
//!                 inputs.push_back(NodeInput::PersonalTrained { graph: job.graph, weights });
//!             }
//!             NodeEffect::Predict(prediction) => {
//!                 let outputs = models.find(prediction.graph).and_then(|model| model.predict(&prediction).ok());
//!                 let (id, for_ms) = (prediction.id, prediction.query.for_ms);
//!                 inputs.push_back(NodeInput::Predicted { id, for_ms, outputs });
//!             }
//!             NodeEffect::Journal(entry) => journal.push(entry),
//!             NodeEffect::Forecast(forecast) => println!("{:.3}", forecast.value),
//!             // Trainings end before the next input: there is none to cancel.
//!             NodeEffect::CancelTraining(_) | NodeEffect::Read { .. } | NodeEffect::Persist => {}
//!         }
//!     }
//! }
//! assert_eq!((published.len(), journal.len()), (1, 1), "it is online, and its reading is in the journal");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod command;
pub mod config;
pub mod core;
pub mod forecast;
pub mod inline;
pub mod journal;
pub mod model_cache;
pub mod prepared;
pub mod privacy;
pub mod reading;
pub mod shell;
pub mod source;
pub mod time_zone;
pub mod window;
