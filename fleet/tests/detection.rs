//! Copies are counted as what they are, and honest work is not.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use evenhand_fleet::data::{self, AsPublished, Dataset};
use evenhand_fleet::experiment::detection::DetectionCounts;
use evenhand_fleet::experiment::setup::Setup;
use evenhand_fleet::experiment::trial::{self, Crew, FurtherName};
use evenhand_fleet::experiment::variant::Variant;
use evenhand_fleet::scenario::{Attack, Corruption};
use evenhand_fleet::sim::Interrupt;

const NODES: usize = 12;
const ROUNDS: u32 = 60;

fn counted(crew: &Crew) -> DetectionCounts {
    let (dataset, corruption) = (Dataset::Synthetic, Corruption::FeatureNoise);
    let setup = Setup::published(dataset, corruption, Variant::Evenhand, AsPublished::Paper, 11);
    assert_eq!((setup.nodes, setup.rounds), (NODES, ROUNDS));
    let pool = Arc::new(data::load(dataset, None, &setup.scenario().data_request()).unwrap());
    let mut counts = DetectionCounts::default();
    let mut count = |closed: &evenhand_federation::ClosedRound| counts.add(closed);
    trial::run_crew(&setup, &pool, crew, &Interrupt::default(), &mut count).unwrap();
    counts
}

#[test]
fn honest_nodes_raise_no_alarm() {
    let counts = counted(&Crew::default());
    assert_eq!(counts.answers, NODES as u64 * u64::from(ROUNDS));
    assert_eq!((counts.repeated, counts.twins, counts.flagged_nodes()), (0, 0, Some(0.0)));
}

#[test]
fn a_second_name_and_an_answer_sent_again_are_counted() {
    let second = FurtherName { of: 5, from: 1, until: None, attack: None };
    let crew = Crew { attackers: vec![(2, Attack::FirstAnswer)], names: vec![second], ..Crew::default() };
    let counts = counted(&crew);
    let nodes = |flags: &[bool]| (0..flags.len()).filter(|node| flags[*node]).collect::<Vec<usize>>();
    assert_eq!(nodes(&counts.nodes_repeated), [2]);
    // The roster is in the order of names: the second one follows the first.
    assert_eq!(nodes(&counts.nodes_twins), [5, 6]);
    // All but the first are that one again; twins are recognised after some rounds.
    assert_eq!(counts.repeated, u64::from(ROUNDS) - 1);
    assert!((80..2 * u64::from(ROUNDS)).contains(&counts.twins), "{}", counts.twins);
    assert_eq!(counts.flagged_nodes(), Some(3.0 / 13.0));
}
