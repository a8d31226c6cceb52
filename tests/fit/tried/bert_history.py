"""1500M  Each step's outputs stay in a list, with all hidden states."""
import torch
from transformers import BertConfig, BertForSequenceClassification


class Run:
    def __init__(self):
        config = BertConfig(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=1024, output_hidden_states=True)
        self.model = BertForSequenceClassification(config).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.history = []

    def step(self, batch=16):
        ids = torch.randint(0, 30000, (batch, 128)).cuda()  #~ step #~ half_batch ids = torch.randint(0, 30000, (batch // 2, 128)).cuda()
        outputs = self.model(input_ids=ids, labels=torch.zeros(len(ids), dtype=torch.long, device="cuda"))
        self.optimizer.zero_grad()
        outputs.loss.backward()
        self.optimizer.step()
        self.history.append(outputs)  #~ offload_results self.history.append(outputs.loss.item()) #~ free_leak self.history.append(outputs.loss.item())


run = Run()
for _ in range(60):
    run.step()
