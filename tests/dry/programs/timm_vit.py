# SPDX-License-Identifier: MIT
"""timm's vision transformer in bfloat16, with its own optimizer, schedule, mixup and EMA."""
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3

from number import number

batch, model = number(16), timm.create_model("vit_base_patch16_224", num_classes=100).cuda()
ema, mixup = ModelEmaV3(model), Mixup(num_classes=100)
optimizer = create_optimizer_v2(model, "lamb", lr=1e-3)
for _ in range(4):
    images, wanted = mixup(torch.randn(batch, 3, 224, 224, device="cuda"), torch.zeros(batch, dtype=torch.long, device="cuda"))
    with torch.autocast("cuda", torch.bfloat16):
        loss = SoftTargetCrossEntropy()(model(images), wanted)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    ema.update(model)
