# SPDX-License-Identifier: MIT
"""torchrec's embedding bags in front of a dense network."""
import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor

bags = EmbeddingBagCollection(device=torch.device("cuda"), tables=[
    EmbeddingBagConfig(name="t%d" % i, embedding_dim=128, num_embeddings=200_000, feature_names=["f%d" % i]) for i in range(4)])
dense = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).cuda()
optimizer = torch.optim.Adam([*bags.parameters(), *dense.parameters()])
for _ in range(3):
    features = KeyedJaggedTensor.from_lengths_sync(["f%d" % i for i in range(4)], torch.randint(0, 200_000, (4 * 1024 * 3,)),
                                                   torch.full((4 * 1024,), 3, dtype=torch.int32)).to("cuda")
    dense(bags(features).values()).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
