"""1500M  The hidden state of an LSTM goes on with its graph, which retain_graph keeps."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(5000, width), nn.ModuleList(nn.GRUCell(width, width) for _ in range(2)), nn.Linear(width, 5000)

    def forward(self, ids, hidden):
        for t in range(ids.shape[1]):
            x = self.embed(ids[:, t])
            for i, cell in enumerate(self.cell):
                hidden[i] = x = cell(x, hidden[i])
        return self.out(x), hidden


def train(batch=64):
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hidden = [torch.zeros(batch, 512, device="cuda") for _ in range(2)]
    for step in range(60):
        ids = torch.randint(0, 5000, (batch, 16), device="cuda")  #~ step
        scores, hidden = model(ids, hidden)
        loss = nn.functional.cross_entropy(scores, ids[:, 0])
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        hidden = [h for h in hidden]  #~ free_leak hidden = [h.detach() for h in hidden]
        with torch.no_grad():
            for p in model.parameters():
                p.data.sub_(p.grad, alpha=0.1)


train()
