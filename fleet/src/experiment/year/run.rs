//! A year in virtual time.

use std::sync::Arc;

use evenhand_federation::{FederationConfig, GeneralConfig, InitialModel, OrderPayload, Policy, Tick};
use evenhand_protocol::codec::{Bf16, EncodedUpdate};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Declined, Measured, Update};
use evenhand_protocol::reference::{reference_weights, sketch};
use rayon::prelude::*;

use super::figures::YearFigures;
use super::household_choice::{self, YearHousehold};
use super::learner::{CommonModels, HouseholdLearner};
use super::net;
use super::pooled::PooledModel;
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
    let mut year = YearRun::new(settings, homes, step_s)?;
    let (round_every, score_every) =
        (day / settings.rounds_a_day as usize, settings.stride_h as usize * day / 24);
    for now in 0..steps {
        let at = Tick(now as u64 * u64::from(step_s) * 1000);
        year.join(at, now);
        if (now + 1) % round_every == 0 {
            year.round(at, now)?;
        }
        if (now + 1) % day == 0 {
            year.homes.par_iter_mut().filter(|home| home.has_rows(now)).for_each(|home| {
                home.learn_personal(now, settings);
            });
            progress(YearProgress { day: (now + 1) / day, days: steps / day });
            if interrupt.is_raised() {
                return Ok(None);
            }
        }
        if (now + 1) % score_every == 0 {
            year.forecast(now, now >= steps * 2 / 3);
        }
    }
    Ok(Some(YearFigures::of(settings, &year.homes, day)))
}

struct YearRun<'a> {
    settings: &'a YearSettings,
    homes: Vec<HouseholdLearner>,
    initial: Arc<[f32]>,
    evenhand: VirtualFederation,
    fedavg: VirtualFederation,
    pooled: PooledModel,
}

impl<'a> YearRun<'a> {
    fn new(settings: &'a YearSettings, homes: Vec<YearHousehold>, step_s: u32) -> Result<Self, YearError> {
        let initial: Arc<[f32]> = net::initial(settings.seed).into();
        let founders = homes.iter().filter(|home| home.joins == 0).count();
        let nodes = homes.len();
        let federation = |name: &str, policy: Policy| {
            let found = baseline::strategy(name);
            let found = found.ok_or_else(|| YearError::Defect(format!("no strategy {name}")))?;
            let model = InitialModel {
                graph: Digest::of_weights(&initial),
                onnx: Arc::new([]),
                weights: Arc::clone(&initial),
            };
            VirtualFederation::new(config(settings, policy, founders, nodes), (found.create)(), model, nodes)
        };
        Ok(Self {
            evenhand: federation("evenhand", Policy::Continuous)?,
            fedavg: federation("fedavg", Policy::Paper)?,
            pooled: PooledModel::new(&initial, settings.seed),
            homes: homes
                .into_iter()
                .enumerate()
                .map(|(number, home)| HouseholdLearner::new(home, step_s, number as u64, settings, &initial))
                .collect(),
            settings,
            initial,
        })
    }

    fn join(&mut self, at: Tick, now: usize) {
        let joining: Vec<usize> =
            (0..self.homes.len()).filter(|home| self.homes[*home].joins == now).collect();
        for node in joining {
            // Rounds begin with a tick, so that nothing is to be answered here.
            self.evenhand.join(at, node);
            self.fedavg.join(at, node);
        }
    }

    /// A round of every variant that learns.
    fn round(&mut self, at: Tick, now: usize) -> Result<(), YearError> {
        let Self { settings, homes, initial, evenhand, fedavg, pooled } = self;
        let (settings, initial) = (*settings, &*initial);
        evenhand.round(at, Vec::new(), &mut |orders| {
            answers(homes, orders, |home, order| answer(home, order, now, settings, initial, true))
        })?;
        let latest = fedavg.weights();
        fedavg.round(at, Vec::new(), &mut |orders| {
            answers(homes, orders, |home, order| match order {
                OrderPayload::Train(task) => train(home, task, &latest, now, settings),
                _ => None,
            })
        })?;
        homes
            .par_iter_mut()
            .filter(|home| home.has_rows(now))
            .for_each(|home| home.learn_alone(now, settings));
        pooled.learn(now, homes, settings);
        Ok(())
    }

    fn forecast(&mut self, now: usize, at_end: bool) {
        let fedavg = self.fedavg.weights();
        let common = CommonModels { fedavg: &fedavg, pooled: &self.pooled.weights };
        (self.homes.par_iter_mut().filter(|home| home.has_rows(now)))
            .for_each(|home| home.forecast(now, &common, at_end));
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
    config.training.learning_rate = 1.0;
    config.training.local_epochs = settings.epochs;
    config.training.local_learning_rate = settings.learning_rate;
    config.training.local_momentum = settings.momentum;
    config.training.samples_max = settings.samples_max;
    config.exploiting.k = settings.k.min(founders as u32);
    config
}

/// Answers of nodes, which work in parallel.
fn answers(
    homes: &mut [HouseholdLearner],
    orders: Vec<(usize, OrderPayload)>,
    work: impl Fn(&mut HouseholdLearner, &OrderPayload) -> Option<Answer> + Sync,
) -> Vec<(usize, Answer)> {
    let mut by_home: Vec<Vec<OrderPayload>> = vec![Vec::new(); homes.len()];
    orders.into_iter().for_each(|(node, order)| by_home[node].push(order));
    let found: Vec<(usize, Vec<Answer>)> = (homes.par_iter_mut().zip(by_home).enumerate())
        .map(|(node, (home, orders))| (node, orders.iter().filter_map(|order| work(home, order)).collect()))
        .collect();
    found
        .into_iter()
        .flat_map(|(node, answers)| answers.into_iter().map(move |answer| (node, answer)))
        .collect()
}

fn answer(
    home: &mut HouseholdLearner,
    order: &OrderPayload,
    now: usize,
    settings: &YearSettings,
    initial: &[f32],
    _holds: bool,
) -> Option<Answer> {
    match order {
        OrderPayload::Train(task) => {
            home.receive(now, task.weights());
            let held = home.held.clone()?;
            train(home, task, &held, now, settings)
        }
        OrderPayload::Measure(request) => {
            if !home.has_rows(now) {
                return Some(Answer::Unmeasured { round: request.round, reason: Declined::NoData });
            }
            let batch = home.unmeasured(now, request.samples_max as usize);
            let at = reference_weights(initial, request.seed);
            let (_, gradient) = net::gradient(&at, &batch);
            let vector = Bf16::encode(&sketch(&gradient, request.seed, request.dimension as usize));
            let samples = (batch.targets.len() / 3) as u32;
            Some(Answer::Measured(Measured { round: request.round, samples, vector }))
        }
        _ => None,
    }
}

fn train(
    home: &mut HouseholdLearner,
    task: &evenhand_federation::TrainingTask,
    weights: &[f32],
    now: usize,
    settings: &YearSettings,
) -> Option<Answer> {
    if !home.has_rows(now) {
        return Some(Answer::Decline { round: task.round(), reason: Declined::NoData });
    }
    let batch = home.batch(now, settings.samples_max as usize, settings.history_days as usize);
    let YearSettings { epochs, learning_rate, momentum, .. } = *settings;
    let (loss, trained) = net::epochs(weights, &batch, epochs, learning_rate, momentum);
    let vector = EncodedUpdate::F32(weights.iter().zip(&trained).map(|(old, new)| old - new).collect());
    let samples = (batch.targets.len() / 3) as u32;
    Some(Answer::Update(Update {
        round: task.round(),
        samples,
        loss,
        online_loss: loss,
        online_samples: samples,
        vector,
    }))
}
