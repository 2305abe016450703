#![allow(clippy::unwrap_used)]

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;

const SHAPE: FrameShape = FrameShape { channels: 1, rows: 1, columns: 1, stacked: 3 };

fn step(action: usize, reward: i8, end: EpisodeEnd) -> Experience {
    Experience { action, reward, end }
}

/// Frames 1, 2, 3, …; an episode ends after every fourth.
fn memory(capacity: usize, frames: u8) -> ReplayMemory {
    let mut memory = ReplayMemory::new(SHAPE, capacity);
    for number in 1..=frames {
        let end = if number % 4 == 0 { EpisodeEnd::Terminated } else { EpisodeEnd::Continues };
        memory.push(&[number], number % 4 == 1, step(number.into(), 0, end));
    }
    memory
}

fn bytes(state: &[f32]) -> Vec<u8> {
    state.iter().map(|number| (number * 255.0).round() as u8).collect()
}

#[test]
fn a_state_never_reaches_into_the_episode_before() {
    let memory = memory(16, 7);
    assert_eq!(bytes(&memory.state(0)), [0, 0, 1]);
    assert_eq!(bytes(&memory.state(2)), [1, 2, 3]);
    assert_eq!(bytes(&memory.state(3)), [2, 3, 4]);
    assert_eq!(bytes(&memory.state(4)), [0, 0, 5]);
    assert_eq!(bytes(&memory.state(5)), [0, 5, 6]);
}

#[test]
fn samples_are_whole_transitions_also_after_the_ring_went_round() {
    let mut generator = ChaCha8Rng::seed_from_u64(1);
    for frames in [6, 9, 23, 64] {
        let memory = memory(9, frames);
        assert_eq!(memory.len(), usize::from(frames).min(9));
        let sample = memory.sample(200, &mut generator).unwrap();
        for (at, action) in sample.actions.iter().enumerate() {
            let state = bytes(&sample.states[3 * at..][..3]);
            let next = bytes(&sample.next_states[3 * at..][..3]);
            assert_eq!(u32::from(state[2]), *action, "the newest frame is the one that was acted on");
            let place = (action - 1) % 4;
            let expected: Vec<u8> =
                (0..3).map(|back| if place + back >= 2 { (action + back - 2) as u8 } else { 0 }).collect();
            assert_eq!(state, expected);
            if sample.terminated[at] {
                assert_eq!((place, next), (3, vec![0; 3]));
            } else {
                assert_eq!(next[..2], state[1..]);
                assert_eq!(u32::from(next[2]), action + 1);
            }
            assert!(*action < u32::from(frames), "the newest has no next frame yet");
        }
    }
}

#[test]
fn what_was_cut_off_is_never_sampled() {
    let mut memory = ReplayMemory::new(SHAPE, 8);
    memory.push(&[1], true, step(1, 0, EpisodeEnd::Continues));
    memory.push(&[2], false, step(2, 0, EpisodeEnd::Continues));
    memory.cut_off();
    memory.push(&[3], true, step(3, 1, EpisodeEnd::Continues));
    memory.push(&[4], false, step(4, 0, EpisodeEnd::Continues));
    let sample = memory.sample(100, &mut ChaCha8Rng::seed_from_u64(2)).unwrap();
    assert!(sample.actions.iter().all(|action| [1, 3].contains(action)), "{:?}", sample.actions);
    let mut all_cut = ReplayMemory::new(SHAPE, 8);
    (0..4).for_each(|_| all_cut.push(&[1], true, step(0, 0, EpisodeEnd::Truncated)));
    assert_eq!(all_cut.sample(1, &mut ChaCha8Rng::seed_from_u64(2)), None);
}

#[test]
fn too_few_transitions_are_no_sample() {
    let empty = ReplayMemory::new(SHAPE, 8);
    assert_eq!(empty.sample(1, &mut ChaCha8Rng::seed_from_u64(3)), None);
    assert_eq!(memory(8, 1).sample(1, &mut ChaCha8Rng::seed_from_u64(3)), None);
}

#[test]
fn a_hundred_thousand_atari_transitions_fit_into_the_promised_memory() {
    let shape = FrameShape { channels: 1, rows: 84, columns: 84, stacked: 4 };
    let per_transition = shape.bytes() + size_of::<Slot>();
    assert!(per_transition * 100_000 <= 800_000_000, "{per_transition} bytes a transition");
}
