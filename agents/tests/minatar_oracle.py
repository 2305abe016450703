#!/usr/bin/env python3
"""The grid games against MinAtar: the same actions and random choices must lead to the same transitions.

    venv/bin/pip install --no-deps minatar==1.0.15 && venv/bin/pip install numpy
    venv/bin/python agents/tests/minatar_oracle.py target/debug/examples/game_transitions [STEPS]

MinAtar runs in this process, the games in one of their own; lines are exchanged over a pipe. Random numbers are drawn here:
the actions, the starts and the numbers by which actions are repeated.
"""

import logging
import subprocess
import sys

logging.disable(logging.WARNING)
import minatar  # noqa: E402
import numpy as np  # noqa: E402

GAMES = {"breakout": "breakout", "space-invaders": "space_invaders"}


class Recorded:
    """A generator whose last choices can be read."""

    def __init__(self, seed):
        self.random, self.start, self.chance = np.random.RandomState(seed), 0, 0.0

    def randint(self, below):
        self.start = self.random.randint(below)
        return self.start

    def rand(self):
        self.chance = self.random.rand()
        return self.chance


class Player:
    """Plays well enough to see the end of a wave or of all bricks; at random now and then, more often in some episodes."""

    def __init__(self, game, seed):
        self.game, self.random, self.chance = game, np.random.RandomState(seed), 0.0

    def begin(self):
        self.chance = self.random.choice([0.0, 0.02, 0.3])

    def act(self, state):
        if self.random.rand() < self.chance:
            return self.random.randint(6)
        own = int(np.argmax(state[9, :, 0]))
        if self.game == "breakout":
            row, ball = (int(place[0]) for place in np.nonzero(state[:, :, 1]))
            return 1 if ball < own else 3 if ball > own else 0
        danger = state[6:9, :, 5].any(axis=0)
        if danger[own]:
            return 1 if own > 0 and (own == 9 or not danger[own - 1]) else 3
        aliens = np.nonzero(state[:, :, 1].any(axis=0))[0]
        target = int(aliens[np.argmin(abs(aliens - own))]) + (1 if state[:, :, 3].any() else -1) * 2
        if abs(target - own) <= 1 or self.random.rand() < 0.3:
            return 5
        return 1 if target < own and own > 0 and not danger[own - 1] else 3 if own < 9 and not danger[own + 1] else 0


def compare(program, game, steps, seed):
    ours = subprocess.Popen([program, game], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(request):
        ours.stdin.write(request + "\n")
        ours.stdin.flush()
        reward, over, cells = ours.stdout.readline().split()
        return float(reward), int(over), cells

    def cells(state):
        return "".join("1" if cell else "0" for cell in np.moveaxis(state, 2, 0).ravel())

    theirs, recorded = minatar.Environment(GAMES[game]), Recorded(seed)
    theirs.random = theirs.env.random = recorded
    player, refills = Player(game, seed + 1), 0
    episodes, total, best, score = 0, 0.0, 0.0, 0.0
    over = True
    for step in range(steps):
        if over:
            player.begin()
            theirs.reset()
            found, expected = ask(f"begin {recorded.start}"), (0.0, 0, cells(theirs.state()))
            episodes, best, score = episodes + 1, max(best, score), 0.0
            if found != expected:
                sys.exit(f"{game}: begin {recorded.start}, episode {episodes}:\n  {found}\n  {expected}")
        before = theirs.state()
        action = player.act(before)
        reward, over = theirs.act(action)
        found, expected = ask(f"act {action} {recorded.chance!r}"), (float(reward), int(over), cells(theirs.state()))
        if found != expected:
            sys.exit(f"{game}: step {step}, action {action}:\n  {found}\n  {expected}")
        things = before[:, :, 3 if game == "breakout" else 1].sum()
        refills += theirs.state()[:, :, 3 if game == "breakout" else 1].sum() > things + 1
        total, score = total + reward, score + reward
    ours.stdin.close()
    ours.wait()
    print(f"{game}: {steps} equal transitions, {episodes} episodes, mean score {total / episodes:.1f}, best {best:.0f}, "
          f"{refills} times all bricks or aliens gone")


def main():
    program, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    for number, game in enumerate(GAMES):
        compare(program, game, steps, 10 * number + 1)


if __name__ == "__main__":
    main()
