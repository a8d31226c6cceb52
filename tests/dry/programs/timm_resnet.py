# SPDX-License-Identifier: MIT
"""timm's ResNet-50, channels last, half precision with a scaler, and an evaluation."""
import timm
import torch

from number import number

model = timm.create_model("resnet50").cuda().to(memory_format=torch.channels_last)
optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), torch.amp.GradScaler("cuda")
for _ in range(4):
    with torch.autocast("cuda", torch.float16):
        loss = model(torch.randn(number(32), 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)).float().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    model(torch.randn(128, 3, 224, 224, device="cuda"))
