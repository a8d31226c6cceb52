# SPDX-License-Identifier: MIT
"""A GAN with two optimizers; each few steps the images of a fixed noise go into a gallery.  Then the generator samples."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
noise_width, rows, every = draw.choice((64, 100, 128)), draw.choice((32, 64)), draw.randint(3, 6)
side = 32
generator = nn.Sequential(nn.Linear(noise_width, 1024), nn.ReLU(), nn.Linear(1024, 3 * side * side), nn.Tanh()).cuda()
critic = nn.Sequential(nn.Linear(3 * side * side, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1)).cuda()
of_generator = torch.optim.Adam(generator.parameters(), 2e-4, betas=(0.5, 0.999))
of_critic = torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.5, 0.999))
fixed = torch.randn(rows * 4, noise_width, device="cuda")
gallery = []


def train_critic(real, fake):
    of_critic.zero_grad()
    loss = critic(fake.detach()).mean() - critic(real).mean()
    loss.backward()
    of_critic.step()


def train_generator(fake):
    of_generator.zero_grad()
    loss = -critic(fake).mean()
    loss.backward()
    of_generator.step()


for step in range(draw.randint(90, 160)):
    real = torch.rand(rows, 3 * side * side, device="cuda")
    for _ in range(draw.randint(1, 2)):
        train_critic(real, generator(torch.randn(rows, noise_width, device="cuda")))
    train_generator(generator(torch.randn(rows, noise_width, device="cuda")))
    if step % every == 0:
        gallery.append(generator(fixed))  # CULPRIT

with torch.no_grad():
    for _ in range(draw.randint(80, 140)):
        generator(torch.randn(rows * 2, noise_width, device="cuda")).clamp(0, 1)
