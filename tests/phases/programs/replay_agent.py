# SPDX-License-Identifier: MIT
"""A value network learns from a bounded buffer of frames, with a target network; then it plays."""
import collections
import copy
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
frame, actions, rows = draw.choice((84, 96)), 6, draw.choice((16, 32))
network = nn.Sequential(nn.Flatten(), nn.Linear(4 * frame * frame, 256), nn.ReLU(), nn.Linear(256, actions)).cuda()
target = copy.deepcopy(network).requires_grad_(False)
optimizer = torch.optim.RMSprop(network.parameters(), 2.5e-4)
replay = collections.deque(maxlen=draw.randint(30, 60))


@torch.no_grad()
def act(state):
    return network(state).argmax(1)


for step in range(draw.randint(4, 6) * replay.maxlen):
    state = torch.randn(rows, 4, frame, frame, device="cuda")
    replay.append((state, act(state), torch.randn(rows, device="cuda")))
    if len(replay) < 10:
        continue
    state, action, reward = draw.choice(replay)
    wanted = reward + 0.99 * target(state).amax(1)
    loss = nn.functional.smooth_l1_loss(network(state).gather(1, action[:, None]).squeeze(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        target.load_state_dict(network.state_dict())
for _ in range(draw.randint(80, 160)):
    act(torch.randn(rows, 4, frame, frame, device="cuda"))
