# SPDX-License-Identifier: MIT
"""Lightning's Trainer with validation; under --rank with --ddp."""
import sys

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from number import number


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        width = number(4096)
        self.net = nn.Sequential(nn.Linear(1024, width), nn.GELU(), nn.Linear(width, 1024))

    def training_step(self, batch, index):
        loss = self.net(batch[0]).pow(2).mean()
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        self.log("checked", self.net(batch[0]).mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


data = DataLoader(TensorDataset(torch.randn(512, 1024)), 16)
more = {"strategy": "ddp", "devices": 4} if "--ddp" in sys.argv else {"devices": 1}
lightning.Trainer(max_epochs=2, accelerator="gpu", logger=False, enable_checkpointing=False, precision="16-mixed", **more).fit(Net(), data, data)
