# SPDX-License-Identifier: MIT
"""Policy gradients: each iteration gathers rollouts into a list, learns from them and clears it.  The policy then plays without learning."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
seen, actions, games = draw.choice((512, 1024)), 18, draw.choice((256, 512))
policy = nn.Sequential(nn.Linear(seen, 512), nn.Tanh(), nn.Linear(512, actions)).cuda()
value = nn.Sequential(nn.Linear(seen, 512), nn.Tanh(), nn.Linear(512, 1)).cuda()
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], 3e-4)


@torch.no_grad()
def play(turns, memory=None):
    state = torch.randn(games, seen, device="cuda")
    for _ in range(turns):
        action = torch.distributions.Categorical(logits=policy(state), validate_args=False).sample()
        if memory is not None:
            memory.append((state, action, torch.randn(games, device="cuda")))
        state = state + 0.1 * torch.randn_like(state)


def learn(memory, rounds):
    for _ in range(rounds):
        for state, action, reward in memory:
            advantage = reward - value(state).squeeze(1)
            loss = -(torch.log_softmax(policy(state), 1).gather(1, action[:, None]).squeeze(1) * advantage.detach()).mean() + advantage.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


memory = []
for _ in range(draw.randint(5, 9)):
    play(draw.randint(8, 16), memory)
    learn(memory, draw.randint(1, 2))
    memory.clear()
play(draw.randint(60, 160))
