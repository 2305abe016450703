//! One trial: the production coordinator and nodes on one stream of data.

use std::sync::Arc;

use evenhand_fairness::{Appraisal, Estimator, SamplerKind, Weighting};
use evenhand_federation::strategy::StrategyKind;
use evenhand_federation::{self as federation, InitialModel, Rules, StopRuleKind};
use evenhand_models::{LoadOptions, Loss, Model};
use evenhand_node::core;
use evenhand_node::window::{RowSettings, WindowSettings};
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

use super::setup::{AsPublished, Contender, Setup};
use crate::FleetError;
use crate::data::{Dataset, Pool};
use crate::observer::{Observer, Outlook, Questions};
use crate::outcome::{Member, Outcome, Settings};
use crate::progress::{Progress, Style};
use crate::rules;
use crate::stream::{self, NodeStream, Stream};
use crate::transport::Interrupt;
use crate::transport::memory::{self, Carriage, Company, Conduct, Seat};
use crate::watch::Watch;

/// Rounds begin so far apart that whoever comes or goes is heard of before the next.
const ROUND_INTERVAL_MS: u32 = 200;

/// Coalitions of each size that a contribution is estimated from: so many that what is left of its error is the data's.
const SAMPLES: usize = 256;

/// Runs a trial on the pool its seed chose; `on_round` is told of every round.
pub fn run(
    setup: &Setup,
    pool: &Arc<Pool>,
    interrupt: &Interrupt,
    on_round: &mut dyn FnMut(u32),
) -> Result<Outcome, FleetError> {
    let stream = Arc::new(Stream::new(Arc::clone(pool), setup)?);
    let (_, onnx) = setup.dataset.model(setup.as_published);
    let model = Model::load(onnx, &LoadOptions::default())?;
    let weights: Arc<[f32]> = initial_weights(&model, setup.seed).into();
    let members = members(setup, &stream);
    let seats = members.iter().enumerate().map(|(node, member)| seat(setup, &stream, node, member));
    let company = Company {
        rules: Rules::new(rules(setup)?)?,
        blueprint: InitialModel {
            graph: Digest(model.digest()),
            onnx: onnx.into(),
            weights: Arc::clone(&weights),
        },
        seats: seats.collect::<Result<_, _>>()?,
        carriage: Carriage::Whole,
    };
    let outlook = Ahead { stream, next: 1, questions: setup.questions, seed: setup.seed };
    let loss = loss(setup.dataset);
    let observer = Observer::new(model, loss, setup.nodes, Arc::clone(&weights), Box::new(outlook));
    let progress = Progress::new(std::io::sink(), Style::Silent);
    let mut watch = Watch::new(settings(setup), members, observer, weights, progress);
    if setup.shuffled {
        watch = watch.with_rewards_mistaken(mistaken_receivers(setup.nodes, setup.seed));
    }
    let mut see = |closed: &federation::RoundEvidence, _: f64| {
        watch.round(closed)?;
        on_round(closed.record.round);
        Ok(())
    };
    let ran = memory::play(company, interrupt, &mut see)?;
    Ok(watch.conclude(ran))
}

/// A random ring in which everybody is followed by another.
fn mistaken_receivers(nodes: usize, seed: u64) -> Vec<usize> {
    let mut ring: Vec<usize> = (0..nodes).collect();
    ring.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut receivers = vec![0; nodes];
    for (place, node) in ring.iter().enumerate() {
        receivers[*node] = ring[(place + 1) % nodes];
    }
    receivers
}

/// The cleanest first; names in the order of ζ, with which columns are numbered too.
fn members(setup: &Setup, stream: &Stream) -> Vec<Member> {
    let width = setup.nodes.to_string().len();
    let member =
        |(node, zeta): (usize, &f64)| Member { id: format!("node-{:0width$}", node + 1), zeta: *zeta };
    stream.zetas().iter().enumerate().map(member).collect()
}

fn seat(setup: &Setup, stream: &Arc<Stream>, node: usize, member: &Member) -> Result<Seat, FleetError> {
    let rows = RowSettings {
        shape: stream.shape().to_vec(),
        // Only the latest batch counts, however long a node was not asked.
        history_rows: stream.batch(node),
        replay_share: 0.0,
    };
    // Alone there is nobody to keep an update from, and nobody to be away from.
    let conduct = match setup.contender {
        Contender::Standalone => stream::Conduct::Steady,
        _ => stream.conduct(node),
    };
    Ok(Seat {
        id: NodeId::new(&member.id)?,
        settings: core::Settings {
            federation: federation_name()?,
            token: None,
            software: env!("CARGO_PKG_VERSION").into(),
            window: WindowSettings::Rows(rows),
            paced_by_rounds: true,
            forecasts: false,
            parameters_max: usize::MAX,
            seed: setup.seed,
        },
        source: Box::new(NodeStream::new(Arc::clone(stream), node)),
        readings_a_round: 1,
        conduct: Box::new(Behaviour { conduct, seed: setup.seed, node }),
    })
}

fn federation_name() -> Result<FederationId, FleetError> {
    Ok(FederationId::new("experiment")?)
}

/// The rules of a trial: the published ones, with what the contender changes.
fn rules(setup: &Setup) -> Result<federation::FederationConfig, FleetError> {
    let as_code = setup.as_published == AsPublished::Code;
    let appraisal = match as_code {
        true => Appraisal {
            estimator: Estimator::StratifiedIndependent,
            samples: 1,
            weighting: Weighting::Twice,
            utility: setup.utility,
            ..Default::default()
        },
        false => Appraisal { utility: setup.utility, samples: SAMPLES, ..Default::default() },
    };
    let mut rules = rules::as_reported(&settings(setup), federation_name()?, setup.nodes);
    rules.federation.round_interval_ms = ROUND_INTERVAL_MS;
    rules.federation.strategy = strategy(setup.contender);
    rules.training.loss = setup.dataset.loss();
    rules.training.learning_rate = setup.learning_rate;
    rules.training.optimiser = setup.optimiser;
    rules.training.dilute = as_code;
    rules.contribution = appraisal;
    rules.exploring.rule = match setup.contender {
        Contender::EvenhandCalibrated | Contender::EvenhandCalibratedCredit => StopRuleKind::Calibrated,
        _ => StopRuleKind::Paper,
    };
    rules.exploiting.sampler = sampler(setup.contender, as_code);
    Ok(rules)
}

fn strategy(contender: Contender) -> StrategyKind {
    match contender {
        Contender::Evenhand
        | Contender::EvenhandWithoutReplacement
        | Contender::EvenhandCredit
        | Contender::EvenhandCalibrated
        | Contender::EvenhandCalibratedCredit => StrategyKind::Evenhand,
        Contender::Fedavg => StrategyKind::FedAvg,
        Contender::QFfl => StrategyKind::QFfl,
        Contender::Fgfl => StrategyKind::Fgfl,
        Contender::Gog => StrategyKind::Gog,
        Contender::Standalone => StrategyKind::Standalone,
        Contender::Cons => StrategyKind::Cons,
    }
}

/// Ours as named, or as the published code draws; the baselines draw k distinct nodes.
fn sampler(contender: Contender, as_code: bool) -> SamplerKind {
    match contender {
        Contender::EvenhandCredit | Contender::EvenhandCalibratedCredit => SamplerKind::Credit,
        Contender::Evenhand | Contender::EvenhandCalibrated if !as_code => SamplerKind::WithReplacement,
        _ => SamplerKind::WithoutReplacement,
    }
}

fn loss(dataset: Dataset) -> Loss {
    match dataset.loss() {
        federation::Loss::Mse => Loss::Mse,
        federation::Loss::CrossEntropy => Loss::CrossEntropy,
        federation::Loss::Nll => Loss::Nll,
        federation::Loss::Huber => Loss::Huber,
    }
}

/// θ₀ of a trial: each tensor uniform within the bounds of the shipped one, which is how PyTorch begins.
fn initial_weights(model: &Model, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let shipped = model.initial_weights();
    let mut weights = Vec::with_capacity(shipped.len());
    for parameter in model.parameters() {
        let values = &shipped[parameter.offset..parameter.offset + parameter.len()];
        let bound = values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        match Uniform::new_inclusive(-bound, bound) {
            Ok(uniform) => weights.extend(uniform.sample_iter(&mut rng).take(values.len())),
            Err(_) => weights.extend_from_slice(values),
        }
    }
    weights
}

/// The settings as reports show them.
fn settings(setup: &Setup) -> Settings {
    Settings {
        rounds: setup.rounds,
        seed: setup.seed,
        transport: "memory".into(),
        codec: "f32".into(),
        strategy: setup.contender.name(),
        sampler: sampler(setup.contender, setup.as_published == AsPublished::Code).name().into(),
        temperature: setup.temperature,
        window: setup.window,
        strictness: setup.strictness,
        watched: setup.watched,
        k: setup.k,
        command: String::new(),
    }
}

/// What all nodes measure next, as it truly is.
struct Ahead {
    stream: Arc<Stream>,
    next: u32,
    /// Samples, at most; 0 for all.
    questions: usize,
    seed: u64,
}

impl Outlook for Ahead {
    fn next(&mut self) -> Option<Questions> {
        if self.next > self.stream.rounds() {
            return None;
        }
        let clean = self.stream.clean(self.next);
        let scales = clean.scales.iter().map(|(mean, deviation)| (f64::from(*mean), f64::from(*deviation)));
        let all = Questions { batch: clean.batch, scales: scales.collect() };
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.next.into());
        self.next += 1;
        Some(match self.questions {
            0 => all,
            most => all.thinned(most, &mut rng),
        })
    }
}

/// A stream's conduct, as the transport asks for it.
struct Behaviour {
    conduct: stream::Conduct,
    seed: u64,
    node: usize,
}

impl Conduct for Behaviour {
    fn is_away(&self, round: u32) -> bool {
        self.conduct.is_away(self.seed, self.node, round)
    }

    fn is_silent(&self, round: u32, exploiting: u32) -> bool {
        let exploiting = (exploiting > 0).then_some(exploiting);
        self.conduct.is_silent(self.seed, self.node, round, exploiting)
    }
}
