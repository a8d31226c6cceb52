# SPDX-License-Identifier: MIT
"""TRL's SFTTrainer."""
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from number import number
from words import llama, sentence, tokenizer

data = Dataset.from_dict({"text": [sentence(i) for i in range(64)]})
SFTTrainer(llama(), train_dataset=data, processing_class=tokenizer(),
           args=SFTConfig("/tmp/unused", per_device_train_batch_size=number(4), max_steps=5, max_length=256, save_strategy="no", report_to=[])).train()
