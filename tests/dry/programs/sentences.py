# SPDX-License-Identifier: MIT
"""sentence-transformers: contrastive training of a BERT of random weights."""
import torch
from sentence_transformers import InputExample, SentenceTransformer, losses, models
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel

from number import number
from words import sentence, tokenizer

import os
import tempfile

folder = tempfile.mkdtemp()
BertModel(BertConfig(vocab_size=2048, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048)).save_pretrained(folder)
tokenizer().save_pretrained(folder)
part = models.Transformer(folder, max_seq_length=128)
model = SentenceTransformer(modules=[part, models.Pooling(512)], device="cuda")
pairs = [InputExample(texts=[sentence(i, 50), sentence(i + 1, 50)]) for i in range(64)]
os.environ["WANDB_DISABLED"] = "true"
model.fit([(DataLoader(pairs, batch_size=number(16)), losses.MultipleNegativesRankingLoss(model))], epochs=1, show_progress_bar=False)
print(model.encode([sentence(1)]).shape)
