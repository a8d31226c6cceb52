# SPDX-License-Identifier: MIT
"""PyTorch Geometric: two layers over a random graph."""
import torch
from torch_geometric.nn import GATConv, GCNConv

edges = torch.randint(0, 20_000, (2, 400_000)).cuda()
x = torch.randn(20_000, 256, device="cuda")
layers = torch.nn.ModuleList([GCNConv(256, 256), GATConv(256, 64, heads=4)]).cuda()
optimizer = torch.optim.Adam(layers.parameters())
for _ in range(4):
    h = layers[1](layers[0](x, edges).relu(), edges)
    h.log_softmax(1).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
