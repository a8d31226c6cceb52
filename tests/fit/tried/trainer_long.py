"""2600M  transformers' Trainer over long texts: the forward pass of the first step does not fit."""
import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, at):
        ids = torch.randint(0, 8000, (512,))
        return {"input_ids": ids, "labels": ids}


def main():
    config = BertConfig(vocab_size=8000, hidden_size=512, num_hidden_layers=10, num_attention_heads=8, intermediate_size=2048)
    many = 16  #~ half_batch many = 8
    checkpointed = False  #~ checkpointing checkpointed = True
    settings = TrainingArguments(output_dir="out", per_device_train_batch_size=many, max_steps=4, report_to=[], save_strategy="no",
                                 gradient_checkpointing=checkpointed, use_cpu=False, disable_tqdm=True, dataloader_pin_memory=False)
    Trainer(BertForMaskedLM(config), settings, train_dataset=Texts()).train()


main()
