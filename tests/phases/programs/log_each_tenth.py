# SPDX-License-Identifier: MIT
"""Each tenth step of a character model logs the gradients of its head.  Then the weights go to the host, and the model writes text."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
vocabulary, width = draw.choice((2000, 4000)), draw.choice((256, 384))


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.mixer = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, text):
        x = self.table(text)
        mean = x.cumsum(1) / torch.arange(1, text.shape[1] + 1, device=text.device)[:, None]
        return self.head(x + self.mixer(mean))


model = Characters().cuda()
optimizer = torch.optim.AdamW(model.parameters())
log = {}
for step in range(10 * draw.randint(14, 30)):
    text = torch.randint(vocabulary, (8, 65), device="cuda")
    optimizer.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()).backward()
    if step % 10 == 9:
        log[step] = model.head.weight.grad.clone()  # CULPRIT
    optimizer.step()

saved = {name: value.cpu() for name, value in model.state_dict().items()}
with torch.no_grad():
    for _ in range(draw.randint(3, 6)):
        text = torch.zeros(1, 1, dtype=torch.long, device="cuda")
        for _ in range(draw.randint(20, 60)):
            following = torch.multinomial(torch.softmax(model(text)[:, -1], 1), 1)
            text = torch.cat([text, following], 1)
