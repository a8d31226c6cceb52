# SPDX-License-Identifier: MIT
"""torchvision's Faster R-CNN: a training step and an inference."""
import torch
from torchvision.models.detection import fasterrcnn_resnet50_fpn

from number import number

model = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=5).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(2):
    images = [torch.rand(3, 480, 640, device="cuda") for _ in range(number(2))]
    wanted = [{"boxes": torch.tensor([[10.0, 10.0, 200.0, 200.0]]).cuda(), "labels": torch.tensor([1]).cuda()} for _ in images]
    sum(model(images, wanted).values()).backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    model(images)
