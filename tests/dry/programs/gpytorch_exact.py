# SPDX-License-Identifier: MIT
"""An exact Gaussian process of GPyTorch: Cholesky on the device."""
import gpytorch
import torch


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean, self.kernel = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


x = torch.rand(700, 4).cuda()
likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
model = Model(x, x.sum(1), likelihood).cuda().train()
wanted, optimizer = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), torch.optim.Adam(model.parameters())
for _ in range(4):
    optimizer.zero_grad()
    (-wanted(model(x), x.sum(1))).backward()
    optimizer.step()
