//! Grid games: rules in known situations, and properties of random play.
//!
//! Breakout and Space Invaders are compared with MinAtar itself by minatar_oracle.py.
#![allow(clippy::unwrap_used)]

use evenhand_agents::games::{GridAction, GridFrame, GridPong, GridRules, SIDE};
use evenhand_agents::{Environment, EpisodeEnd, GridGame};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn frame(rules: &dyn GridRules) -> Vec<u8> {
    let mut frame = vec![0; rules.channels() * SIDE * SIDE];
    rules.draw(&mut GridFrame::clear(&mut frame));
    frame
}

/// Rows and columns of a channel's things.
fn cells(frame: &[u8], channel: usize) -> Vec<(usize, usize)> {
    let plane = &frame[channel * SIDE * SIDE..][..SIDE * SIDE];
    (0..SIDE * SIDE).filter(|cell| plane[*cell] == 255).map(|cell| (cell / SIDE, cell % SIDE)).collect()
}

#[test]
fn pong_begins_towards_the_agent_and_who_misses_gives_a_point() {
    let mut game = GridPong::default();
    game.begin(3);
    let first = frame(&game);
    assert_eq!((cells(&first, 0), cells(&first, 1)), (vec![(4, 9), (5, 9), (6, 9)], vec![(4, 4)]));
    // The paddle goes up, the ball down.
    let mut rewards = Vec::new();
    for _ in 0..5 {
        rewards.push(game.act(GridAction::Up).0);
    }
    assert_eq!(rewards, [0.0, 0.0, 0.0, 0.0, -1.0]);
    assert_eq!(cells(&frame(&game), 1), [(7, 4)], "the next ball goes to the loser again");
}

#[test]
fn pong_is_won_by_following_the_ball_and_lost_by_staying() {
    let play = |follows: bool| {
        let mut game = GridPong::default();
        game.begin(2);
        let (mut score, mut over, mut steps) = (0.0, false, 0);
        while !over && steps < 5000 {
            let seen = frame(&game);
            let (ball, paddle) = (cells(&seen, 1)[0].0, cells(&seen, 0)[1].0);
            // The edge of the paddle sends the ball back the other way than it came.
            let aim = if steps % 3 == 0 { ball + 1 } else { ball };
            let action = match (follows, aim.cmp(&paddle)) {
                (false, _) | (true, std::cmp::Ordering::Equal) => GridAction::Stay,
                (true, std::cmp::Ordering::Less) => GridAction::Up,
                (true, std::cmp::Ordering::Greater) => GridAction::Down,
            };
            let (reward, is_over) = game.act(action);
            (score, over, steps) = (score + reward, is_over, steps + 1);
        }
        (score, over)
    };
    let (won, lost) = (play(true), play(false));
    assert!(won.0 > 0.0, "{won:?}");
    assert!(lost.1 && lost.0 < 0.0, "{lost:?}");
}

#[test]
fn random_play_scores_what_is_known() {
    // Young and Tian report about 0.5 for Breakout.
    for (game, expected) in
        [(GridGame::Breakout, 0.3..0.8), (GridGame::SpaceInvaders, 1.5..4.5), (GridGame::Pong, -3.0..-1.0)]
    {
        let mut environment = game.environment(11);
        let mut frame = vec![0; environment.frame_shape().bytes()];
        let (mut total, episodes) = (0.0, 300);
        let mut generator = ChaCha8Rng::seed_from_u64(12);
        for _ in 0..episodes {
            environment.reset(&mut frame).unwrap();
            loop {
                let done = environment.step(generator.random_range(0..6), &mut frame).unwrap();
                total += f64::from(done.reward);
                if done.end.is_over() {
                    break;
                }
            }
        }
        let mean = total / f64::from(episodes);
        println!("{}: {mean:.2}", game.name());
        assert!(expected.contains(&mean), "{}: {mean}", game.name());
    }
}

proptest! {
    #[test]
    fn there_is_always_one_ball_or_cannon_and_no_step_after_the_end(
        game in prop::sample::select(GridGame::ALL.to_vec()), seed: u64, actions in prop::collection::vec(0usize..6, 1..400)
    ) {
        let mut environment = game.environment(seed);
        let mut frame = vec![0; environment.frame_shape().bytes()];
        environment.reset(&mut frame).unwrap();
        let mut over = false;
        for action in actions {
            let step = environment.step(action, &mut frame).unwrap();
            if over {
                prop_assert_eq!((step.reward, step.end), (0.0, EpisodeEnd::Terminated));
            }
            over = step.end.is_over();
            match game {
                GridGame::SpaceInvaders => prop_assert_eq!(cells(&frame, 0).len(), 1),
                GridGame::Breakout => prop_assert_eq!((cells(&frame, 0).len(), cells(&frame, 1).len()), (1, 1)),
                GridGame::Pong => prop_assert_eq!((cells(&frame, 0).len(), cells(&frame, 1).len(), cells(&frame, 3).len()), (3, 1, 3)),
            }
            prop_assert!(step.reward.abs() <= 6.0 && frame.iter().all(|cell| [0, 255].contains(cell)));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_game(game in prop::sample::select(GridGame::ALL.to_vec()), seed: u64) {
        let play = || {
            let mut environment = game.environment(seed);
            let mut frame = vec![0; environment.frame_shape().bytes()];
            environment.reset(&mut frame).unwrap();
            (0..60).flat_map(|step| { environment.step(step % 6, &mut frame).unwrap(); frame.clone() }).collect::<Vec<_>>()
        };
        prop_assert_eq!(play(), play());
    }
}

#[test]
fn an_unknown_action_is_refused() {
    let mut game = GridGame::Pong.environment(1);
    let mut frame = vec![0; game.frame_shape().bytes()];
    game.reset(&mut frame).unwrap();
    assert!(game.step_with(6, 0.5, &mut frame).unwrap_err().to_string().contains("action 6 of 6"));
}
