"""1120M  A teacher stays on the card after its answers were taken, beside the student."""
import torch
from torch import nn


def build(wide, deep):
    return nn.Sequential(*(nn.Linear(wide, wide) for _ in range(deep)))


def distil():
    teacher = build(2048, 24).cuda()
    with torch.no_grad():
        answers = [teacher(torch.randn(64, 2048, device="cuda")).cpu() for _ in range(6)]
    student = build(2048, 12).cuda()  #~ free_before_build del teacher; student = build(2048, 12).cuda()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for answer in answers:
        loss = (student(torch.randn(64, 2048, device="cuda")) - answer.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


distil()
