# SPDX-License-Identifier: MIT
"""transformers' Trainer; under --rank with --fsdp."""
import sys

import torch
from transformers import Trainer, TrainingArguments

from number import number
from words import llama


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        tokens = torch.randint(0, 32000, (512,))
        return {"input_ids": tokens, "labels": tokens}


sharded = {"fsdp": True, "fsdp_config": {"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}} if "--fsdp" in sys.argv else {}
Trainer(llama(8), TrainingArguments("/tmp/unused", per_device_train_batch_size=number(4), max_steps=5, save_strategy="no", report_to=[], bf16=True, **sharded),
        train_dataset=Data()).train()
