//! Measuring the worth of nodes: missing trainings are run in parallel, and stored as soon as they are done.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::WorthError;
use super::cache::ScoreCache;
use super::judges::loss_of_others;
use super::node_set::NodeSet;
use super::progress::TrainingProgress;
use super::regression::{ValuedCoalition, WorthEstimate, shapley_regression};
use super::sampling::{SampledCoalition, sampled_pairs};
use super::settings::WorthSettings;
use super::training::{CoalitionScore, JudgedScore, RetrainingGame};
use super::truth::{NodeWorth, WORTH, WorthTruth};
use crate::data::SamplePool;
use crate::experiment::ExperimentError;
use crate::experiment::trial::node_name;
use crate::experiment::workers;
use crate::scenario::ScenarioConfig;
use crate::sim::Interrupt;

/// A function that reads the data of a scenario.
pub type LoadScenario<'a> = dyn Fn(&ScenarioConfig) -> Result<SamplePool, ExperimentError> + Sync + 'a;

/// The runner of trainings.
pub struct WorthRunner<'a> {
    /// The folder of worths and of the scores of coalitions.
    pub out: &'a Path,
    /// Trainings at the same time.
    pub jobs: usize,
    /// The reader of data.
    pub load: &'a LoadScenario<'a>,
    /// The user's request to end.
    pub interrupt: &'a Interrupt,
}

impl WorthRunner<'_> {
    /// The worth of the nodes of one seed: from disk where it is there; none when interrupted.
    pub fn truth<W: Write + Send>(
        &self,
        settings: &WorthSettings,
        progress: &mut TrainingProgress<W>,
    ) -> Result<Option<WorthTruth>, ExperimentError> {
        settings.check()?;
        if let Some(found) = WorthTruth::load(self.out, settings)? {
            progress.stored(found.trainings);
            return Ok(Some(found));
        }
        let pool = Arc::new((self.load)(&settings.scenario)?);
        let game = RetrainingGame::new(settings, &pool)?;
        let Some(learning_rate) = self.useful_rate(settings, &game, &pool, progress)? else {
            return Ok(None);
        };
        let mut rng = ChaCha8Rng::seed_from_u64(settings.scenario.seed);
        let sampled = sampled_pairs(settings.scenario.nodes, settings.coalitions, &mut rng);
        let all = NodeSet::all(settings.scenario.nodes);
        let wanted: BTreeSet<NodeSet> =
            [NodeSet::EMPTY, all].into_iter().chain(sampled.iter().map(|one| one.members)).collect();
        let Some(cache) = self.scores(settings, (&game, learning_rate), &pool, &wanted, progress)? else {
            return Ok(None);
        };
        let unknown =
            JudgedScore { found: CoalitionScore { loss: f64::NAN, score: None }, losses: Vec::new() };
        let score = |members| cache.get(members).unwrap_or(&unknown);
        let (initial, of_all) = (score(NodeSet::EMPTY), score(all));
        let estimate = |value: &dyn Fn(&JudgedScore) -> f64| {
            let valued = |one: &SampledCoalition| ValuedCoalition {
                members: one.members,
                weight: one.weight,
                pair: one.pair,
                value: value(score(one.members)),
            };
            let rows: Vec<ValuedCoalition> = sampled.iter().map(valued).collect();
            shapley_regression(settings.scenario.nodes, (value(initial), value(of_all)), &rows)
        };
        let by_loss = estimate(&|judged| -judged.found.loss);
        // A model that is lost scores as the initial one does.
        let sign = if settings.scenario.dataset.has_classes() { 1.0 } else { -1.0 };
        let by_score = estimate(&|judged| sign * judged.found.score.or(initial.found.score).unwrap_or(0.0));
        let judges = game.judges();
        let to_others: Vec<Option<(f64, Option<f64>)>> = (0..settings.scenario.nodes)
            .map(|node| {
                loss_of_others(&judges, &initial.losses, node)?;
                let found =
                    estimate(&|judged| -loss_of_others(&judges, &judged.losses, node).unwrap_or(f64::NAN));
                Some((found.values[node], found.standard_errors.map(|errors| errors[node])))
            })
            .collect();
        let truth = WorthTruth {
            format: WORTH.format,
            settings: settings.clone(),
            learning_rate,
            trainings: wanted.len(),
            initial: initial.found,
            all: of_all.found,
            rho_zeta: None,
            rho_zeta_by_score: None,
            rho_zeta_to_others: None,
            reliability: None,
            reliability_to_others: None,
            nodes: nodes(&game.zetas, &by_loss, &by_score, &to_others),
        };
        let truth = truth.summarised();
        truth.save(self.out)?;
        Ok(Some(truth))
    }

    /// The rate at which the model of all nodes has the lowest loss; none when interrupted.
    fn useful_rate<W: Write + Send>(
        &self,
        settings: &WorthSettings,
        game: &RetrainingGame,
        pool: &SamplePool,
        progress: &mut TrainingProgress<W>,
    ) -> Result<Option<f64>, ExperimentError> {
        let rates = settings.learning_rates();
        if let [rate] = rates[..] {
            return Ok(Some(rate));
        }
        let all = NodeSet::all(settings.scenario.nodes);
        let mut best: Option<(f64, f64)> = None;
        for rate in rates {
            let wanted = BTreeSet::from([all]);
            let Some(cache) = self.scores(settings, (game, rate), pool, &wanted, progress)? else {
                return Ok(None);
            };
            let loss = cache.get(all).map_or(f64::INFINITY, |judged| judged.found.loss);
            if best.is_none_or(|(least, _)| loss < least) {
                best = Some((loss, rate));
            }
        }
        Ok(best.map(|(_, rate)| rate))
    }

    /// The scores of `wanted`: from disk where they are there, from trainings where not; none when interrupted.
    fn scores<W: Write + Send>(
        &self,
        settings: &WorthSettings,
        (game, learning_rate): (&RetrainingGame, f64),
        pool: &SamplePool,
        wanted: &BTreeSet<NodeSet>,
        progress: &mut TrainingProgress<W>,
    ) -> Result<Option<ScoreCache>, ExperimentError> {
        let cache = ScoreCache::open(self.out, &description(settings, learning_rate, pool))
            .map_err(WorthError::from)?;
        let missing: Vec<NodeSet> =
            wanted.iter().copied().filter(|members| cache.get(*members).is_none()).collect();
        progress.stored(wanted.len() - missing.len());
        let what = format!(
            "level {}, seed {}, rate {learning_rate}",
            settings.scenario.level, settings.scenario.seed
        );
        let state = Mutex::new((cache, progress));
        workers::for_each(
            &missing,
            self.jobs,
            self.interrupt,
            || game.trainer(),
            |trainer, members| {
                let found = game.score(trainer, *members, learning_rate)?;
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.0.put(*members, found).map_err(WorthError::from)?;
                state.1.trained(&what);
                Ok(())
            },
        )?;
        let (cache, _) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let complete = wanted.iter().all(|members| cache.get(*members).is_some());
        Ok(complete.then_some(cache))
    }
}

/// Everything that the score of a coalition depends on.
fn description(settings: &WorthSettings, learning_rate: f64, pool: &SamplePool) -> String {
    let of_game = WorthSettings { coalitions: 0, learning_rate: Some(learning_rate), ..settings.clone() };
    format!("{} {of_game:?} {} of {}", WORTH.format, pool.len(), pool.recorded)
}

fn nodes(
    zetas: &[f64],
    by_loss: &WorthEstimate,
    by_score: &WorthEstimate,
    to_others: &[Option<(f64, Option<f64>)>],
) -> Vec<NodeWorth> {
    let error = |of: &WorthEstimate, node: usize| of.standard_errors.as_ref().map(|errors| errors[node]);
    let of = |(node, zeta): (usize, &f64)| NodeWorth {
        id: node_name(node, zetas.len()),
        zeta: *zeta,
        worth: by_loss.values[node],
        se: error(by_loss, node),
        worth_by_score: by_score.values[node],
        se_by_score: error(by_score, node),
        worth_to_others: to_others[node].map(|(worth, _)| worth),
        se_to_others: to_others[node].and_then(|(_, se)| se),
    };
    zetas.iter().enumerate().map(of).collect()
}
