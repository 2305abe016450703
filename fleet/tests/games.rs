//! Agents that learn a game together: the production coordinator and nodes, environments as sources.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use evenhand_agents::GridGame;
use evenhand_fleet::data::AsPublished;
use evenhand_fleet::experiment::games::{
    self, GameEngine, GameProgress, GameRecord, GameRunner, GameSetup, GameSource, GameTable, page,
};
use evenhand_fleet::experiment::variant::Variant;
use evenhand_fleet::scenario::AgentCorruption;
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::progress::ProgressStyle;

fn setup(variant: Variant) -> GameSetup {
    let published = GameSetup::published(
        GridGame::Breakout,
        GameEngine::Grid,
        AgentCorruption::RewardNoise,
        variant,
        AsPublished::Paper,
        1,
    );
    GameSetup { rounds: 4, decisions: 6, train_every: 2, episodes: 1, ..published }
}

fn source() -> GameSource {
    GameSource { game: GridGame::Breakout, engine: GameEngine::Grid, python: PathBuf::new() }
}

fn record(setup: &GameSetup) -> GameRecord {
    games::run(setup, &source(), &Interrupt::default(), &mut |_, _| {}).unwrap().unwrap()
}

#[test]
fn drawn_agents_act_learn_and_hold_the_model_that_they_were_given() {
    let mut rounds = Vec::new();
    let setup = setup(Variant::Fedavg);
    let record = games::run(&setup, &source(), &Interrupt::default(), &mut |round, held| {
        rounds.push((round.clone(), held.to_vec()));
    });
    let record = record.unwrap().unwrap();
    assert_eq!((rounds.len(), record.curve.len(), record.drawn_from), (4, 4, Some(1)));
    assert_eq!(record.drawn.iter().sum::<u32>(), 2 * 4, "two are drawn in a round");
    for (node, drawn) in record.drawn.iter().enumerate() {
        assert_eq!(record.decisions[node], u64::from(drawn * 6), "only who was drawn acts and learns");
    }
    for pair in rounds.windows(2) {
        for node in 0..5 {
            let (before, after) = (&pair[0].1[node], &pair[1].1[node]);
            assert_eq!(before != after, pair[1].0.drawn.contains(&node), "node {node}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trial() {
    let setup = setup(Variant::Fedavg);
    assert_eq!(record(&setup), record(&setup));
    assert_ne!(record(&setup).curve.len(), 0);
}

#[test]
fn everybody_is_measured_at_first_by_the_papers_policy_and_by_ours() {
    for variant in [Variant::Paper, Variant::Evenhand] {
        let record = record(&setup(variant));
        assert_eq!(record.standings.len(), 5, "{variant:?}");
        assert!(
            record.standings.iter().any(|standing| *standing != 0.0),
            "{variant:?}: {:?}",
            record.standings
        );
    }
}

#[test]
fn a_stored_trial_is_not_run_again_and_other_settings_have_their_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let interrupt = Interrupt::default();
    let runner = GameRunner { out: folder.path(), python: Path::new("python3"), interrupt: &interrupt };
    let setups = [setup(Variant::Fedavg)];
    let run = || runner.records(&setups, GameProgress::new(std::io::sink(), ProgressStyle::Silent)).unwrap();
    let first = run();
    let path = folder.path().join(setups[0].path());
    let written = std::fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(run()[0].scores, first[0].scores);
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), written);
    let other = GameSetup { k: 3, ..setups[0].clone() };
    assert_ne!(other.path(), setups[0].path());
    std::fs::create_dir_all(folder.path().join(other.path()).parent().unwrap()).unwrap();
    std::fs::copy(&path, folder.path().join(other.path())).unwrap();
    assert!(GameRecord::load(folder.path(), &other).unwrap_err().to_string().contains("other settings"));
    let html = page::page(&first, "evenhand-fleet games");
    roxmltree::Document::parse(html.strip_prefix("<!doctype html>\n").unwrap()).unwrap();
    let table = GameTable::of(&first).text();
    assert!(table.contains("fedavg") && table.contains("0.169 ± 0.755"), "{table}");
}

#[test]
fn an_interrupted_trial_is_no_record() {
    let interrupt = Interrupt::default();
    let stopped = games::run(&setup(Variant::Fedavg), &source(), &interrupt, &mut |_, _| interrupt.raise());
    assert!(stopped.unwrap().is_none());
}

#[test]
fn an_environment_that_cannot_be_started_ends_the_trial_with_a_sentence() {
    let source = GameSource { engine: GameEngine::Atari, python: "/nowhere/python".into(), ..source() };
    let setup = GameSetup { engine: GameEngine::Atari, ..setup(Variant::Fedavg) };
    let error = games::run(&setup, &source, &Interrupt::default(), &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("cannot start the environment"), "{error}");
}
