"""1300M  The probabilities of each batch are kept, with the graph of a single layer."""
import torch
from torch import nn


def predict(count=120, batch=4096):
    images = torch.randn(batch * 8, 64, device="cuda")
    net, kept = nn.Linear(64, 1000).cuda(), []
    for i in range(count):
        x = images[i % 8 * batch:][:batch]
        scores = net(x).softmax(-1)  #~ step #~ no_grad with torch.no_grad(): scores = net(x).softmax(-1)
        kept.append(scores)  #~ offload_results kept.append(scores.detach().cpu()) #~ free_leak kept.append(scores.detach())
    return kept


print(len(predict()))
