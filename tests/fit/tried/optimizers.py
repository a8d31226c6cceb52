# SPDX-License-Identifier: MIT
"""Adam with state in 16 bits, and in 8."""
import torch


class Small(torch.optim.Optimizer):
    """Its state has the type `kept`, and is float32 while its parameter is updated."""

    def __init__(self, params, lr=1e-4, kept=torch.bfloat16, **_):
        super().__init__(params, {"lr": lr})
        self.kept = kept

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"], state["v"] = torch.zeros_like(p, dtype=self.kept), torch.zeros_like(p, dtype=self.kept)
                m = state["m"].float().lerp_(p.grad.float(), 0.1)
                state["m"].copy_(m)
                v = state["v"].float().mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                state["v"].copy_(v)
                p.sub_(m.div_(v.sqrt_().add_(1e-8)), alpha=group["lr"])
        return loss


class Eighth(Small):
    def __init__(self, params, **how):
        super().__init__(params, kept=torch.uint8, **how)
