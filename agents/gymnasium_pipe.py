#!/usr/bin/env python3
"""An environment for Evenhand's agents, as a process of its own behind a pipe: stdin and stdout.

    python3 -m venv venv && venv/bin/pip install ale-py              # Atari; or gymnasium, for its environments
    venv/bin/python agents/gymnasium_pipe.py atari breakout --seed 1
    venv/bin/python agents/gymnasium_pipe.py gymnasium CartPole-v1

Atari as in Mnih et al. 2015: an action is repeated for four frames, the picture is the brighter of the last two, grey and
84 × 84, a state is four of them, and an episode begins with up to 30 frames of nothing. The smallest set of actions.
`--sticky P` repeats the action before with probability P in every frame, as Machado et al. 2018 recommend.

A Gymnasium environment needs discrete actions. Pictures become grey and 84 × 84, grids of truth values stay as they are,
vectors are squashed to a byte each. The protocol is described in agents/src/gymnasium.rs.
"""

import argparse
import struct
import sys

import numpy as np

SIDE, SKIP, STACKED, NOOPS_MAX = 84, 4, 4, 30
RESET = 255


def shrunk(picture):
    """A grey picture as 84 × 84 means over areas."""

    def edges(length):
        return np.linspace(0, length, SIDE + 1)

    def means(values, length):
        total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
        at = edges(length)
        low = np.floor(at).astype(int)
        nxt = np.minimum(low + 1, length)
        sums = total[low] + (at - low)[:, None] * (total[nxt] - total[low])
        return np.diff(sums, axis=0) * (SIDE / length)

    rows = means(picture.astype(np.float64), picture.shape[0])
    return np.clip(np.rint(means(rows.T, picture.shape[1]).T), 0, 255).astype(np.uint8)


class Atari:
    """A game of the Arcade Learning Environment."""

    def __init__(self, game, seed, sticky):
        from ale_py import ALEInterface, LoggerMode, roms

        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale = ALEInterface()
        self.ale.setInt("random_seed", seed)
        self.ale.setFloat("repeat_action_probability", sticky)
        self.ale.loadROM(roms.get_rom_path(game.replace("-", "_")))
        self.actions = self.ale.getMinimalActionSet()
        self.random = np.random.default_rng(seed)
        self.shape = (1, SIDE, SIDE, STACKED, len(self.actions))

    def picture(self):
        return self.ale.getScreenGrayscale()

    def reset(self):
        self.ale.reset_game()
        for _ in range(self.random.integers(1, NOOPS_MAX + 1)):
            self.ale.act(0)
            if self.ale.game_over():
                self.ale.reset_game()
        return shrunk(self.picture())

    def step(self, action):
        reward, before = 0, self.picture()
        for frame in range(SKIP):
            if frame == SKIP - 1:
                before = self.picture()
            reward += self.ale.act(self.actions[action])
            if self.ale.game_over():
                break
        end = 1 if self.ale.game_over() else 0
        return reward, end, shrunk(np.maximum(before, self.picture()))


class Gymnasium:
    """Any environment of Gymnasium with discrete actions."""

    def __init__(self, name, seed):
        import gymnasium

        self.environment, self.seed = gymnasium.make(name), seed
        space, actions = self.environment.observation_space, self.environment.action_space
        if not isinstance(actions, gymnasium.spaces.Discrete):
            sys.exit(f"gymnasium_pipe: the actions of {name} are not discrete; choose another environment")
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) not in (1, 2, 3):
            sys.exit(f"gymnasium_pipe: observations of {name} are neither pictures nor vectors; choose another one")
        self.space, self.first = space, int(actions.start)
        self.is_picture = space.dtype == np.uint8 and len(space.shape) >= 2
        shape, stacked = self.frame(np.zeros(space.shape, space.dtype)).shape, STACKED if self.is_picture else 1
        self.shape = (*shape, stacked, int(actions.n))

    def frame(self, observation):
        observation = np.asarray(observation)
        if self.is_picture:
            grey = observation if observation.ndim == 2 else observation @ [0.299, 0.587, 0.114]
            return shrunk(grey)[None]
        if observation.dtype == bool:
            planes = observation if observation.ndim == 3 else observation.reshape(*observation.shape, *[1] * (3 - observation.ndim))
            return (np.moveaxis(planes, 2, 0) * 255).astype(np.uint8)
        low, high = self.space.low.ravel().astype(float), self.space.high.ravel().astype(float)
        values = observation.ravel().astype(float)
        bounded = (high - low) < 1e6
        share = np.where(bounded, (values - low) / np.where(bounded, high - low, 1), (np.tanh(values) + 1) / 2)
        return np.clip(np.rint(share * 255), 0, 255).astype(np.uint8).reshape(1, 1, -1)

    def reset(self):
        observation, _ = self.environment.reset(seed=self.seed)
        self.seed = None
        return self.frame(observation)

    def step(self, action):
        observation, reward, terminated, truncated, _ = self.environment.step(self.first + action)
        return reward, 1 if terminated else 2 if truncated else 0, self.frame(observation)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["atari", "gymnasium"])
    parser.add_argument("name", help="breakout, pong, space-invaders, …; or the id of a Gymnasium environment")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sticky", type=float, default=0.0, help="Atari: repeat the action before with probability P")
    flags = parser.parse_args()
    if flags.kind == "atari":
        environment = Atari(flags.name, flags.seed, flags.sticky)
    else:
        environment = Gymnasium(flags.name, flags.seed)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(b"EVG1" + struct.pack("<5I", *environment.shape))
    answers.flush()
    while request := requests.read(1):
        reward, end, frame = (0, 0, environment.reset()) if request[0] == RESET else environment.step(request[0])
        answers.write(struct.pack("<fB", reward, end) + frame.tobytes())
        answers.flush()


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        pass
