//! A year in virtual time.

use std::sync::Arc;

use evenhand_federation::{
    FederationConfig, GeneralConfig, InitialModel, OrderPayload, Policy, Tick, TrainingTask,
};
use evenhand_models::{ModelError, shipped};
use evenhand_protocol::codec::{Bf16, EncodedUpdate};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Declined, LossKind, MeasureRequest, Measured, Update};
use evenhand_protocol::reference::{reference_weights, sketch};
use rayon::prelude::*;

use super::figures::YearFigures;
use super::household_choice::{self, YearHousehold};
use super::learner::{CommonModels, HouseholdLearner};
use super::network::Network;
use super::pooled::PooledModel;
use super::rewards::RewardFigures;
use super::settings::YearSettings;
use super::virtual_federation::VirtualFederation;
use super::{YearError, YearProgress};
use crate::baseline;
use crate::data::RecordedSeries;
use crate::sim::Interrupt;

/// Runs a year on recorded series; `progress` is called after each day. None if it was interrupted.
pub fn run(
    settings: &YearSettings,
    recorded: &[RecordedSeries],
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(YearProgress),
) -> Result<Option<YearFigures>, YearError> {
    settings.check()?;
    let homes = household_choice::choose(settings, recorded)?;
    let step_s = household_choice::step_s(settings.dataset);
    let day = 86_400 / step_s as usize;
    let steps = homes.iter().map(|home| home.values.len()).min().unwrap_or(0);
    let mut year = YearRun::new(settings, homes)?;
    let (round_every, score_every) =
        (day / settings.rounds_a_day as usize, settings.stride_h as usize * day / 24);
    for now in 0..steps {
        let at = Tick(now as u64 * u64::from(step_s) * 1000);
        year.read(at, now);
        if (now + 1) % round_every == 0 {
            year.round(at, now)?;
        }
        if (now + 1) % day == 0 {
            year.learn(now)?;
            progress(YearProgress { day: (now + 1) / day, days: steps / day });
            if interrupt.is_raised() {
                return Ok(None);
            }
        }
        if (now + 1) % score_every == 0 {
            year.forecast(now, now >= steps * 2 / 3)?;
        }
    }
    Ok(Some(YearFigures::of(settings, &year.homes, year.rewards, day, steps / day)))
}

struct YearRun<'a> {
    settings: &'a YearSettings,
    network: Network,
    homes: Vec<HouseholdLearner>,
    evenhand: VirtualFederation,
    fedavg: VirtualFederation,
    pooled: PooledModel,
    rewards: RewardFigures,
}

impl<'a> YearRun<'a> {
    fn new(settings: &'a YearSettings, homes: Vec<YearHousehold>) -> Result<Self, YearError> {
        let network = Network::shipped()?;
        let founders = homes.iter().filter(|home| home.joins == 0).count();
        let nodes = homes.len();
        let federation = |name: &str, policy: Policy| {
            let found = baseline::strategy(name);
            let found = found.ok_or_else(|| YearError::Defect(format!("no strategy {name}")))?;
            let model = InitialModel {
                graph: Digest(network.model.digest()),
                onnx: shipped::LOAD_QUANTILES.into(),
                weights: Arc::clone(&network.initial),
            };
            VirtualFederation::new(config(settings, policy, founders, nodes), (found.create)(), model, nodes)
        };
        let rewards = RewardFigures::new(homes.iter().map(|home| home.name.clone()));
        let learner = |(number, home)| HouseholdLearner::new(home, number as u64, settings, &network);
        Ok(Self {
            evenhand: federation("evenhand", Policy::Continuous)?,
            fedavg: federation("fedavg", Policy::Paper)?,
            pooled: PooledModel::new(&network.initial, settings.seed),
            homes: homes.into_iter().enumerate().map(learner).collect(),
            rewards,
            settings,
            network,
        })
    }

    /// The readings of a step come in; households whose day has come join.
    fn read(&mut self, at: Tick, now: usize) {
        for node in (0..self.homes.len()).filter(|home| self.homes[*home].joins == now) {
            // Rounds begin with a tick, so that there is nothing to answer yet.
            self.evenhand.join(at, node);
            self.fedavg.join(at, node);
        }
        self.homes.par_iter_mut().for_each(|home| home.read(now));
    }

    /// A round of every variant that learns together.
    fn round(&mut self, at: Tick, now: usize) -> Result<(), YearError> {
        let Self { settings, network, homes, evenhand, fedavg, pooled, rewards } = self;
        let (settings, network) = (*settings, &*network);
        evenhand.round(at, &mut |orders| {
            answers(homes, orders, |home, order| match order {
                OrderPayload::Train(task) => {
                    home.receive(now, task.weights());
                    let held = home.held.clone().unwrap_or_else(|| Arc::clone(&network.initial));
                    train(home, task, &held, now, settings, network)
                }
                OrderPayload::Measure(request) => measure(home, request, now, network),
                _ => Ok(None),
            })
        })?;
        evenhand.closed().iter().for_each(|closed| rewards.add(closed, |name| evenhand.position(name)));
        let latest = fedavg.weights();
        fedavg.round(at, &mut |orders| {
            answers(homes, orders, |home, order| match order {
                OrderPayload::Train(task) => train(home, task, &latest, now, settings, network),
                _ => Ok(None),
            })
        })?;
        Ok(pooled.learn(now, homes, settings, network)?)
    }

    /// A day's learning from a household's own readings.
    fn learn(&mut self, now: usize) -> Result<(), ModelError> {
        let (settings, network) = (self.settings, &self.network);
        let ready = self.homes.par_iter_mut().filter(|home| home.has_rows(now));
        ready.try_for_each(|home| home.learn(now, settings, network))
    }

    fn forecast(&mut self, now: usize, at_end: bool) -> Result<(), ModelError> {
        let fedavg = self.fedavg.weights();
        let common = CommonModels { fedavg: &fedavg, pooled: &self.pooled.weights };
        let network = &self.network;
        let ready = self.homes.par_iter_mut().filter(|home| home.has_rows(now));
        ready.try_for_each(|home| home.forecast(now, &common, at_end, network))
    }
}

/// The product's configuration, with the pace and the training of the year.
fn config(settings: &YearSettings, policy: Policy, founders: usize, nodes: usize) -> FederationConfig {
    let mut config = FederationConfig {
        federation: GeneralConfig {
            policy,
            seed: settings.seed,
            nodes_min: founders as u32,
            nodes_max: nodes as u32,
            // A minute less, so that a round is due when its time has come.
            round_interval_ms: 86_400_000 / settings.rounds_a_day - 60_000,
            ..Default::default()
        },
        ..Default::default()
    };
    config.training.loss = LossKind::Pinball;
    config.training.learning_rate = 1.0;
    config.training.local_epochs = settings.epochs;
    config.training.local_learning_rate = settings.learning_rate;
    config.training.local_momentum = settings.momentum;
    config.training.samples_max = settings.samples_max;
    config.exploiting.k = settings.k.min(founders as u32);
    config.exploring.tested_nodes = config.exploring.tested_nodes.min(founders as u32);
    config
}

/// Answers of nodes, which work in parallel.
fn answers(
    homes: &mut [HouseholdLearner],
    orders: Vec<(usize, OrderPayload)>,
    work: impl Fn(&mut HouseholdLearner, &OrderPayload) -> Result<Option<Answer>, ModelError> + Sync,
) -> Result<Vec<(usize, Answer)>, YearError> {
    let mut by_home: Vec<Vec<OrderPayload>> = vec![Vec::new(); homes.len()];
    orders.into_iter().for_each(|(node, order)| by_home[node].push(order));
    let found: Result<Vec<Vec<(usize, Answer)>>, ModelError> =
        (homes.par_iter_mut().zip(by_home).enumerate())
            .map(|(node, (home, orders))| {
                let answers = orders.iter().filter_map(|order| work(home, order).transpose());
                answers.map(|answer| Ok((node, answer?))).collect()
            })
            .collect();
    Ok(found?.into_iter().flatten().collect())
}

/// The answer to a request for a reference gradient.
fn measure(
    home: &mut HouseholdLearner,
    request: &MeasureRequest,
    now: usize,
    network: &Network,
) -> Result<Option<Answer>, ModelError> {
    let rows = home.unmeasured(now, request.samples_max as usize);
    if rows.is_empty() {
        return Ok(Some(Answer::Unmeasured { round: request.round, reason: Declined::NoData }));
    }
    let samples = rows.len() as u32;
    let weights = reference_weights(&network.initial, request.seed);
    let gradient = network.reference_gradient(&weights, rows)?.gradient;
    let vector = Bf16::encode(&sketch(&gradient, request.seed, request.dimension as usize));
    Ok(Some(Answer::Measured(Measured { round: request.round, samples, skill: None, vector })))
}

/// The answer to an order to train.
fn train(
    home: &mut HouseholdLearner,
    task: &TrainingTask,
    weights: &[f32],
    now: usize,
    settings: &YearSettings,
    network: &Network,
) -> Result<Option<Answer>, ModelError> {
    let rows = home.rows(now, settings.samples_max as usize, settings.history_days as usize);
    if rows.is_empty() {
        return Ok(Some(Answer::Decline { round: task.round(), reason: Declined::NoData }));
    }
    let samples = rows.len() as u32;
    let trained = network.epochs(weights, rows, &settings.sgd())?;
    Ok(Some(Answer::Update(Update {
        round: task.round(),
        samples,
        loss: trained.loss,
        online_loss: 0.0,
        online_samples: 0,
        vector: EncodedUpdate::F32(trained.gradient),
    })))
}
