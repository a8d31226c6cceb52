"""1300M  A VAE validates after each epoch with gradients on, and keeps the losses."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, wide=1024, latent=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3072, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU())
        self.mean, self.spread = nn.Linear(wide, latent), nn.Linear(wide, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, wide), nn.ReLU(), nn.Linear(wide, 3072), nn.Sigmoid())

    def forward(self, x):
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h)
        z = mean + torch.randn_like(mean) * (spread / 2).exp()
        return self.decoder(z), mean, spread


def loss_of(vae, x):
    y, mean, spread = vae(x)
    return F.mse_loss(y, x, reduction="sum") - 0.5 * (1 + spread - mean ** 2 - spread.exp()).sum()


def validate(vae, batches):
    vae.eval()
    losses = []
    for _ in range(batches):
        x = torch.rand(256, 3072, device="cuda")
        losses.append(loss_of(vae, x))  #~ free_leak losses.append(loss_of(vae, x).item()) #~ no_grad with torch.no_grad(): losses.append(loss_of(vae, x))
    return losses


def main():
    vae = VAE().cuda()
    optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
    for epoch in range(3):
        vae.train()
        for _ in range(10):
            x = torch.rand(256, 3072, device="cuda")  #~ step
            loss = loss_of(vae, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses = validate(vae, 60)
        print(epoch, len(losses))


main()
