"""1800M  A LightningModule with a wide head: Adam makes its state in the first step."""
import pytorch_lightning as pl
import torch
from torch import nn


class Ranker(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(60000, 512)
        self.head = nn.Linear(512, 60000)

    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.head(self.items(batch[0]).mean(1)), batch[0][:, 0])  #~ step

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)  #~ half_state from optimizers import Small; return Small(self.parameters()) #~ state_8bit from optimizers import Eighth; return Eighth(self.parameters())


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randint(0, 60000, (256, 20))), batch_size=32)
pl.Trainer(accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
           default_root_dir="/tmp").fit(Ranker(), data)
