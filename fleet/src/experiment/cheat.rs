//! Attacks on the mechanism, through the production code: what each gains over honest work with the same data.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::ExperimentError;
use super::estimate::Estimate;
use super::setup::Setup;
use super::trial::{self, Crew, FurtherName};
use crate::data::{Dataset, SamplePool};
use crate::scenario::{Attack, FalseReadings};
use crate::sim::{Interrupt, RecordedRun};

/// Rounds after which a free trial begins again under another name: one in which it is measured, and some to be drawn in.
const TRIAL_ROUNDS: u32 = 20;
/// The round in which a second name joins later.
const SECOND_NAME_FROM: u32 = 41;

/// One row of the table: an attack, and what it gained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheatRow {
    /// The attack, or what was done under how many names.
    pub attack: String,
    /// Nodes that attack.
    pub attackers: usize,
    /// Probability of receiving the model, divided by that of honest work with the same data; the mean over seeds.
    pub gain: f64,
    /// Its standard error over seeds; none of a single seed.
    pub gain_error: Option<f64>,
    /// The largest gain of a seed.
    pub gain_max: f64,
    /// The attacker's place by standing, 1 for the best; the mean over seeds.
    pub rank: f64,
    /// Kendall's τ between the standings of the honest nodes with and without the attack; the mean over seeds.
    pub order: f64,
    /// The lowest of a seed.
    pub order_min: f64,
}

/// One attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Single(Attack),
    Colluding(Attack),
    /// Loud in the first rounds, in which all others have no sample yet.
    Alone,
    /// So many names with the same data, from the beginning.
    Names(usize),
    /// A second name with the same data, later.
    SecondNameLater,
    /// Another name every so often, under each of which this is sent.
    FreeTrials(Attack),
    /// Honest work with readings that are not true.
    Pretending(FalseReadings),
}

/// The honest run that an attack is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Control {
    Everybody,
    /// Nobody has a sample in the first rounds.
    AfterWarmUp,
}

/// All attacks on the federation of `setup`, one row each; `seeds` trials of each, a `share` of the nodes in those of several. `done`
/// is called after each trial.
pub fn run(
    setup: &Setup,
    seeds: u64,
    share: f64,
    load: &dyn Fn(&Setup) -> Result<SamplePool, ExperimentError>,
    interrupt: &Interrupt,
    done: &mut dyn FnMut(usize, usize),
) -> Result<Vec<CheatRow>, ExperimentError> {
    let colluders = ((share * setup.nodes as f64).round() as usize).clamp(2, setup.nodes.max(2) - 1);
    let mut plans: Vec<Plan> = Attack::SINGLE.map(Plan::Single).into();
    plans.extend([Plan::Alone, Plan::FreeTrials(Attack::Nothing), Plan::FreeTrials(Attack::Noise)]);
    plans.extend([Plan::Names(2), Plan::SecondNameLater, Plan::Names(5)]);
    plans.extend(Attack::COLLUDING.map(Plan::Colluding));
    if setup.dataset == Dataset::DayAhead {
        plans.extend(FalseReadings::ALL.map(Plan::Pretending));
    }
    let trials = (plans.len() + 2) * seeds as usize;
    let mut rows: Vec<Vec<Gain>> = vec![Vec::new(); plans.len()];
    let mut count = 0;
    for seed in 0..seeds {
        let setup = setup.with_seed(setup.seed.wrapping_add(seed));
        let pool = Arc::new(load(&setup)?);
        let mut trial = |crew: &Crew| {
            let run = trial::run_crew(&setup, &pool, crew, interrupt, &mut |_| {})?;
            count += 1;
            done(count, trials);
            Ok::<Outcome, ExperimentError>(Outcome::of(&run))
        };
        let mut controls = BTreeMap::new();
        for control in [Control::Everybody, Control::AfterWarmUp] {
            controls.insert(control, trial(&control.crew(setup.nodes))?);
        }
        for (plan, gains) in plans.iter().zip(&mut rows) {
            let crew = plan.crew(&setup, colluders);
            let attacked = trial(&crew)?;
            gains.push(Gain::of(
                &controls[&plan.control()],
                &attacked,
                &plan.names(&crew, setup.nodes),
                setup.nodes,
            ));
            if interrupt.is_raised() {
                return Ok(summarised(&plans, rows, colluders));
            }
        }
    }
    Ok(summarised(&plans, rows, colluders))
}

impl Control {
    fn crew(self, nodes: usize) -> Crew {
        match self {
            Self::Everybody => Crew::default(),
            Self::AfterWarmUp => {
                Crew { attackers: (0..nodes).map(|node| (node, Attack::WarmUp)).collect(), ..Crew::default() }
            }
        }
    }
}

/// The names of the attackers: those under which they would be honest, and all.
struct AttackingNames {
    own: Vec<usize>,
    all: Vec<usize>,
}

impl Plan {
    fn crew(self, setup: &Setup, colluders: usize) -> Crew {
        // A node in the middle of the ladder; colluders are spread over it.
        let (nodes, middle) = (setup.nodes, setup.nodes / 2);
        let spread = |place: usize| (2 * place + 1) * nodes / (2 * colluders);
        let attackers = |attackers| Crew { attackers, ..Crew::default() };
        let name = |from: u32| FurtherName { of: middle, from, until: None, attack: None };
        match self {
            Self::Single(attack) => attackers(vec![(middle, attack)]),
            Self::Colluding(attack) => {
                attackers((0..colluders).map(|place| (spread(place), attack)).collect())
            }
            Self::Alone => {
                let role = |node| if node == middle { Attack::AloneThenNoise } else { Attack::WarmUp };
                attackers((0..nodes).map(|node| (node, role(node))).collect())
            }
            Self::Names(names) => Crew { names: vec![name(1); names - 1], ..Crew::default() },
            Self::Pretending(readings) => Crew { pretends: Some((middle, readings)), ..Crew::default() },
            Self::SecondNameLater => Crew { names: vec![name(SECOND_NAME_FROM)], ..Crew::default() },
            Self::FreeTrials(attack) => {
                let begins = (1..=setup.rounds / TRIAL_ROUNDS).map(|trial| trial * TRIAL_ROUNDS + 1);
                let visit = |from: u32| FurtherName {
                    from,
                    until: Some(from + TRIAL_ROUNDS),
                    attack: Some(attack),
                    of: middle,
                };
                Crew {
                    attackers: vec![(middle, attack)],
                    names: begins.map(visit).collect(),
                    leaves: Some((middle, TRIAL_ROUNDS + 1)),
                    ..Crew::default()
                }
            }
        }
    }

    fn control(self) -> Control {
        if self == Self::Alone { Control::AfterWarmUp } else { Control::Everybody }
    }

    fn names(self, crew: &Crew, nodes: usize) -> AttackingNames {
        let middle = nodes / 2;
        let own: Vec<usize> = match self {
            Self::Colluding(_) => crew.attackers.iter().map(|(node, _)| *node).collect(),
            _ => vec![middle],
        };
        let further = nodes..nodes + crew.names.len();
        let all = own.iter().copied().chain(further).collect();
        AttackingNames { own, all }
    }

    fn name(self) -> String {
        match self {
            Self::Single(attack) | Self::Colluding(attack) => crate::names::value_name(&attack),
            Self::Alone => crate::names::value_name(&Attack::AloneThenNoise),
            Self::Names(2) => "two-names".into(),
            Self::Names(5) => "five-names".into(),
            Self::Names(names) => format!("{names}-names"),
            Self::SecondNameLater => "second-name-later".into(),
            Self::Pretending(readings) => crate::names::value_name(&readings),
            Self::FreeTrials(attack) => format!("free-trials-{}", crate::names::value_name(&attack)),
        }
    }
}

/// The result of a trial: standings, and how often each node received the model once nodes were drawn.
struct Outcome {
    standings: Vec<f64>,
    received: Vec<f64>,
}

impl Outcome {
    fn of(run: &RecordedRun) -> Self {
        let nodes = run.nodes.len();
        let drawing = || run.log.rounds.iter().filter(|round| !round.exploring);
        let rounds = drawing().count().max(1) as f64;
        let received = |node: usize| drawing().filter(|round| round.drawn.contains(&node)).count() as f64;
        Self {
            standings: run.log.rounds.last().map_or_else(Vec::new, |last| last.standings.clone()),
            received: (0..nodes).map(|node| received(node) / rounds).collect(),
        }
    }
}

/// Result of one trial.
#[derive(Debug, Clone, Copy)]
struct Gain {
    gain: f64,
    rank: f64,
    order: f64,
}

impl Gain {
    fn of(honest: &Outcome, attacked: &Outcome, names: &AttackingNames, nodes: usize) -> Self {
        let sum =
            |outcome: &Outcome, of: &[usize]| of.iter().map(|node| outcome.received[*node]).sum::<f64>();
        let before = sum(honest, &names.own);
        let after = sum(attacked, &names.all);
        let best = names.all.iter().map(|node| attacked.standings[*node]).fold(f64::NEG_INFINITY, f64::max);
        let rank = 1 + attacked.standings.iter().filter(|standing| **standing > best).count();
        let others: Vec<usize> = (0..nodes).filter(|node| !names.all.contains(node)).collect();
        Self {
            gain: if before > 0.0 { after / before } else { f64::NAN },
            rank: rank as f64,
            order: kendall(&others, &honest.standings, &attacked.standings),
        }
    }
}

/// Kendall's τ of two orders of the same nodes.
fn kendall(nodes: &[usize], a: &[f64], b: &[f64]) -> f64 {
    let (mut agreeing, mut pairs) = (0.0, 0.0);
    for (at, i) in nodes.iter().enumerate() {
        for j in &nodes[at + 1..] {
            agreeing += ((a[*i] - a[*j]) * (b[*i] - b[*j])).signum();
            pairs += 1.0;
        }
    }
    if pairs == 0.0 { f64::NAN } else { agreeing / pairs }
}

fn summarised(plans: &[Plan], rows: Vec<Vec<Gain>>, colluders: usize) -> Vec<CheatRow> {
    let row = |(plan, gains): (&Plan, Vec<Gain>)| {
        let estimate = |of: fn(&Gain) -> f64| Estimate::of(gains.iter().map(|gain| Some(of(gain))));
        let mean = |of: fn(&Gain) -> f64| estimate(of).map_or(f64::NAN, |estimate| estimate.mean);
        CheatRow {
            attack: plan.name(),
            attackers: if matches!(plan, Plan::Colluding(_)) { colluders } else { 1 },
            gain: mean(|gain| gain.gain),
            gain_error: estimate(|gain| gain.gain).and_then(|estimate| estimate.standard_error),
            gain_max: gains.iter().map(|gain| gain.gain).fold(f64::NEG_INFINITY, f64::max),
            rank: mean(|gain| gain.rank),
            order: mean(|gain| gain.order),
            order_min: gains.iter().map(|gain| gain.order).fold(f64::INFINITY, f64::min),
        }
    };
    plans.iter().zip(rows).filter(|(_, gains)| !gains.is_empty()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::kendall;

    #[test]
    fn kendall_counts_pairs_in_the_same_order() {
        assert_eq!(kendall(&[0, 1, 2], &[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 1.0);
        assert_eq!(kendall(&[0, 1, 2], &[1.0, 2.0, 3.0], &[6.0, 5.0, 4.0]), -1.0);
        assert!((kendall(&[0, 1, 2], &[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]) - 1.0 / 3.0).abs() < 1e-12);
        assert!((kendall(&[0, 2], &[1.0, 9.0, 3.0], &[1.0, 0.0, 2.0]) - 1.0).abs() < 1e-12);
    }
}
