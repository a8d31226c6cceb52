"""1300M  A LightningModule keeps what it predicted in its validation on the GPU."""
import pytorch_lightning as pl
import torch
from torch import nn


class Tagger(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 4096))
        self.scores = []

    def training_step(self, batch, index):
        return self.net(batch[0]).square().mean()

    def validation_step(self, batch, index):
        scores = self.net(batch[0]).softmax(-1)  #~ step
        self.scores.append(scores)  #~ offload_results self.scores.append(scores.cpu())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loader(count, batch=1024):
    batch = batch // 1  #~ half_batch batch = batch // 2; count = count * 2
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(count * batch, 256)), batch_size=batch)


pl.Trainer(accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
           num_sanity_val_steps=0, default_root_dir="/tmp").fit(Tagger(), loader(4), loader(80))
