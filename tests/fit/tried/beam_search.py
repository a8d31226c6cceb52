"""1010M  Beam search grows its cache of keys by torch.cat in each step, for sentences of growing length."""
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, cache):
        k, v = self.k(x), self.v(x)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
        weights = torch.softmax(self.q(x) @ k.transpose(1, 2) / 16, -1)
        return x + self.o(weights @ v), (k, v)


class Decoder(nn.Module):
    def __init__(self, dim=512, depth=6, vocab=8000):
        super().__init__()
        self.embed, self.layers, self.head = nn.Embedding(vocab, dim), nn.ModuleList(Layer(dim) for _ in range(depth)), nn.Linear(dim, vocab)

    def forward(self, ids, caches):
        x, new = self.embed(ids), []
        for layer, cache in zip(self.layers, caches):
            x, c = layer(x, cache)
            new.append(c)
        return self.head(x[:, -1]), new


@torch.inference_mode()
def translate(model, batch, beams, length):
    ids = torch.zeros(batch * beams, 1, dtype=torch.long, device="cuda")
    caches = [None] * len(model.layers)
    scores = torch.zeros(batch * beams, device="cuda")
    for _ in range(length):
        logits, caches = model(ids[:, -1:], caches)
        scores = scores + F.log_softmax(logits, -1).amax(-1)
        order = scores.view(batch, beams).argsort(1).flatten()
        caches = [(k.index_select(0, order), v.index_select(0, order)) for k, v in caches]
        ids = torch.cat([ids, torch.zeros(batch * beams, 1, dtype=torch.long, device="cuda")], 1)
    return ids


model = Decoder().cuda().eval()
for size in range(8):
    translate(model, 32, 5, 24 + 4 * size)  #~ half_batch translate(model, 16, 5, 24 + 4 * size); translate(model, 16, 5, 24 + 4 * size) #~ shorter_longest translate(model, 32, 5, min(39, 24 + 4 * size))
