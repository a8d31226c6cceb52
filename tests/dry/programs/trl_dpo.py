# SPDX-License-Identifier: MIT
"""TRL's DPOTrainer, with a reference model."""
from datasets import Dataset
from trl import DPOConfig, DPOTrainer

from number import number
from words import llama, sentence, tokenizer

data = Dataset.from_dict({name: [sentence(i + n, 60) for i in range(64)] for n, name in enumerate(("prompt", "chosen", "rejected"))})
DPOTrainer(llama(), llama(), train_dataset=data, processing_class=tokenizer(),
           args=DPOConfig("/tmp/unused", per_device_train_batch_size=number(2), max_steps=5, save_strategy="no", report_to=[])).train()
