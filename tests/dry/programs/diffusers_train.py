# SPDX-License-Identifier: MIT
"""A step of diffusion training: diffusers' UNet2DConditionModel, VAE and scheduler of random weights."""
import torch
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel

from number import number

unet = UNet2DConditionModel(sample_size=32, block_out_channels=(128, 256, 512), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
                            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=512).cuda()
vae = AutoencoderKL(block_out_channels=(64, 128), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2).cuda().requires_grad_(False)
noise, optimizer = DDPMScheduler(), torch.optim.AdamW(unet.parameters())
batch = number(4)
for _ in range(3):
    hidden = vae.encode(torch.randn(batch, 3, 64, 64, device="cuda")).latent_dist.sample()
    wanted, times = torch.randn_like(hidden), torch.randint(0, 1000, (batch,), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        made = unet(noise.add_noise(hidden, wanted, times), times, torch.randn(batch, 77, 512, device="cuda")).sample
    torch.nn.functional.mse_loss(made.float(), wanted).backward()
    optimizer.step()
    optimizer.zero_grad()
