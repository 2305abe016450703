//! Attacks on the mechanism, through the production code: what each gains over honest work with the same data.

use std::sync::Arc;

use serde::Serialize;

use super::ExperimentError;
use super::setup::Setup;
use super::trial::{self, Crew};
use crate::data::SamplePool;
use crate::scenario::Attack;
use crate::sim::{Interrupt, RecordedRun};

/// Nodes that attack together, of twelve.
const COLLUDERS: usize = 3;

/// One row of the table: an attack, and what it gained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheatRow {
    /// The attack, or what was done under how many names.
    pub attack: String,
    /// Nodes that attack.
    pub attackers: usize,
    /// Probability of receiving the model, divided by that of honest work with the same data; the mean over seeds.
    pub gain: f64,
    /// The largest gain of a seed.
    pub gain_max: f64,
    /// The attacker's place by standing, 1 for the best; the mean over seeds.
    pub rank: f64,
    /// Kendall's τ between the standings of the honest nodes with and without the attack; the lowest over seeds.
    pub order: f64,
}

/// One attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Single(Attack),
    Colluding(Attack),
    /// One more name with the same data.
    TwoNames,
}

/// All attacks on the federation of `setup`, one row each; `seeds` trials of each. `done` is called after each trial.
pub fn run(
    setup: &Setup,
    seeds: u64,
    load: &dyn Fn(&Setup) -> Result<SamplePool, ExperimentError>,
    interrupt: &Interrupt,
    done: &mut dyn FnMut(usize, usize),
) -> Result<Vec<CheatRow>, ExperimentError> {
    let single = Attack::SINGLE.map(Plan::Single).into_iter();
    let colluding = Attack::COLLUDING.map(Plan::Colluding);
    let plans: Vec<Plan> = single.chain([Plan::TwoNames]).chain(colluding).collect();
    let trials = (plans.len() + 1) * seeds as usize;
    let mut rows: Vec<Vec<Gain>> = vec![Vec::new(); plans.len()];
    let mut count = 0;
    for seed in 0..seeds {
        let setup = setup.with_seed(setup.seed.wrapping_add(seed));
        let pool = Arc::new(load(&setup)?);
        let mut trial = |crew: &Crew| {
            let run = trial::run_crew(&setup, &pool, crew, interrupt, &mut |_| {})?;
            count += 1;
            done(count, trials);
            Ok::<RecordedRun, ExperimentError>(run)
        };
        let honest = Outcome::of(&trial(&Crew::default())?);
        for (plan, gains) in plans.iter().zip(&mut rows) {
            let crew = plan.crew(setup.nodes);
            gains.push(Gain::of(&honest, &Outcome::of(&trial(&crew)?), &crew, setup.nodes));
            if interrupt.is_raised() {
                return Ok(summarised(&plans, rows));
            }
        }
    }
    Ok(summarised(&plans, rows))
}

impl Plan {
    fn crew(self, nodes: usize) -> Crew {
        // A node in the middle of the ladder; colluders are spread over it.
        let middle = nodes / 2;
        let spread = |place: usize| (2 * place + 1) * nodes / (2 * COLLUDERS);
        match self {
            Self::Single(attack) => Crew { attackers: vec![(middle, attack)], twin_of: None },
            Self::Colluding(attack) => Crew {
                attackers: (0..COLLUDERS).map(|place| (spread(place), attack)).collect(),
                twin_of: None,
            },
            Self::TwoNames => Crew { attackers: Vec::new(), twin_of: Some(middle) },
        }
    }

    fn name(self) -> String {
        match self {
            Self::Single(attack) | Self::Colluding(attack) => crate::names::value_name(&attack),
            Self::TwoNames => "two-names".into(),
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
    fn of(honest: &Outcome, attacked: &Outcome, crew: &Crew, nodes: usize) -> Self {
        let mut names: Vec<usize> = crew.attackers.iter().map(|(node, _)| *node).collect();
        let own: Vec<usize> = match crew.twin_of {
            Some(node) => {
                names.extend([node, nodes]);
                vec![node]
            }
            None => names.clone(),
        };
        let sum =
            |outcome: &Outcome, of: &[usize]| of.iter().map(|node| outcome.received[*node]).sum::<f64>();
        let before = sum(honest, &own);
        let after = sum(attacked, &names);
        let best = names.iter().map(|node| attacked.standings[*node]).fold(f64::NEG_INFINITY, f64::max);
        let rank = 1 + attacked.standings.iter().filter(|standing| **standing > best).count();
        let others: Vec<usize> = (0..nodes).filter(|node| !names.contains(node)).collect();
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

fn summarised(plans: &[Plan], rows: Vec<Vec<Gain>>) -> Vec<CheatRow> {
    let row = |(plan, gains): (&Plan, Vec<Gain>)| {
        let mean = |of: fn(&Gain) -> f64| gains.iter().map(of).sum::<f64>() / gains.len().max(1) as f64;
        CheatRow {
            attack: plan.name(),
            attackers: if matches!(plan, Plan::Colluding(_)) { COLLUDERS } else { 1 },
            gain: mean(|gain| gain.gain),
            gain_max: gains.iter().map(|gain| gain.gain).fold(f64::NEG_INFINITY, f64::max),
            rank: mean(|gain| gain.rank),
            order: gains.iter().map(|gain| gain.order).fold(f64::INFINITY, f64::min),
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
