"""1880M  The teacher's graph is kept until the student's pass is done."""
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self, wide, deep):
        super().__init__()
        self.enter = nn.Linear(784, wide)
        self.layers = nn.ModuleList(nn.Linear(wide, wide) for _ in range(deep))
        self.leave = nn.Linear(wide, 100)

    def forward(self, x):
        x = F.gelu(self.enter(x))
        for layer in self.layers:
            x = x + F.gelu(layer(x))
        return self.leave(x)


def distill(steps=30, batch=4096):
    teacher, student = Classifier(1024, 12).cuda().eval(), Classifier(512, 6).cuda()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    for step in range(steps):
        x = torch.randn(batch + 64 * step, 784, device="cuda")  #~ step #~ half_batch x = torch.randn((batch + 64 * step) // 2, 784, device="cuda")
        target = teacher(x)  #~ no_grad with torch.no_grad(): target = teacher(x)
        loss = F.kl_div(F.log_softmax(student(x), -1), F.softmax(target.detach(), -1), reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


distill()
