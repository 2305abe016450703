#!/usr/bin/env python3
"""Times of an agent's parts beside a DQN of the same settings in PyTorch, on one core.

    venv/bin/pip install torch numpy
    cargo build --release -p evenhand-agents --example agent_time
    taskset -c 0 venv/bin/python agents/bench/compare.py target/release/examples/agent_time

Both sides hold frames as bytes, sample 32 transitions, run the target network on the next states, take the Huber loss of
the chosen actions, clip every number of the gradient to ±1 and step by RMSprop (centered). Processor time, best of
several stretches; the two take turns.
"""

import json
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ROUNDS = 3
GAMES = {"breakout": (4, 10, 1), "space-invaders": (6, 10, 1), "pixels": (1, 84, 4)}


def network(channels, side, stacked):
    planes = channels * stacked
    if side == 84:
        return nn.Sequential(
            nn.Conv2d(planes, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
            nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6),
        )
    return nn.Sequential(
        nn.Conv2d(planes, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 6)
    )


class Agent:
    def __init__(self, channels, side, stacked):
        self.online, self.target = network(channels, side, stacked), network(channels, side, stacked)
        self.optimiser = torch.optim.RMSprop(
            self.online.parameters(), lr=2.5e-4, alpha=0.95, eps=0.01, centered=True, foreach=True
        )
        self.random, self.stacked = np.random.default_rng(1), stacked
        self.frames = self.random.integers(0, 256, (2000, channels, side, side), dtype=np.uint8)
        self.actions = self.random.integers(0, 6, 2000)
        self.rewards = self.random.integers(-1, 2, 2000).astype(np.float32)
        self.overs = self.random.random(2000) < 0.05

    def states(self, places):
        stacks = [self.frames[places - back] for back in reversed(range(self.stacked))]
        return torch.from_numpy(np.concatenate(stacks, axis=1)).float() / 255

    def decide(self):
        with torch.no_grad():
            return int(self.online(self.states(np.array([100]))).argmax())

    def learn(self):
        places = self.random.integers(self.stacked - 1, 1999, 32)
        with torch.no_grad():
            following = self.target(self.states(places + 1)).max(1).values
        left = torch.from_numpy(~self.overs[places]).float()
        targets = torch.from_numpy(self.rewards[places]) + 0.99 * left * following
        chosen = torch.from_numpy(self.actions[places])[:, None]
        loss = F.smooth_l1_loss(self.online(self.states(places)).gather(1, chosen)[:, 0], targets)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(self.online.parameters(), 1.0)
        self.optimiser.step()


def best_us(run, rounds):
    best = float("inf")
    for stretch in range(6):
        begun = time.process_time()
        for _ in range(rounds):
            run()
        if stretch:
            best = min(best, (time.process_time() - begun) / rounds * 1e6)
    return best


def main():
    torch.set_num_threads(1)
    print("| game | part | Evenhand µs | PyTorch µs | ratio |")
    print("|---|---|--:|--:|--:|")
    for game, shape in GAMES.items():
        ours, theirs = {}, {}
        agent, rounds = Agent(*shape), 20 if game == "pixels" else 300
        for _ in range(ROUNDS):
            line = json.loads(subprocess.run([sys.argv[1], game], check=True, capture_output=True, text=True).stdout)
            for part in ["step", "decide", "learn"]:
                ours[part] = min(ours.get(part, float("inf")), line[f"{part}_us"])
            for part, run in {"decide": agent.decide, "learn": agent.learn}.items():
                theirs[part] = min(theirs.get(part, float("inf")), best_us(run, rounds))
        print(f"| {game} | step | {ours['step']:.1f} | – | – |")
        for part in ["decide", "learn"]:
            print(f"| {game} | {part} | {ours[part]:.0f} | {theirs[part]:.0f} | {ours[part] / theirs[part]:.2f} |")


if __name__ == "__main__":
    main()
