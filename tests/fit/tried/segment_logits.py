"""2300M  Segmentation at full resolution: the scores of all classes at once."""
import torch
import torch.nn.functional as F
from torch import nn


class Segmenter(nn.Module):
    def __init__(self, wide=32, classes=150):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, wide, 3, 2, 1), nn.ReLU(), nn.Conv2d(wide, wide, 3, 2, 1), nn.ReLU())
        self.head = nn.Conv2d(wide, classes, 1)

    def forward(self, x):
        return self.head(self.body(x))


def confidence(scores, size):
    full = F.interpolate(scores, size=size, mode="bilinear")  #~ chunked return torch.cat([F.interpolate(s, size=size, mode="bilinear").softmax(1).amax(1) for s in scores.split(1)])
    return full.softmax(1).amax(1)


@torch.no_grad()
def predict(net, sizes):
    maps = []
    for side in sizes:
        images = torch.rand(4, 3, side, side, device="cuda")  #~ step #~ half_batch images = torch.rand(2, 3, side, side, device="cuda")
        maps.append(confidence(net(images), (side, side)).cpu())
    return maps


predict(Segmenter().cuda().eval(), [256, 320, 384, 448, 512, 640, 512])
