# SPDX-License-Identifier: MIT
"""Ten steps of a diffusers pipeline of random weights, to images on the CPU."""
from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel

from number import number

unet = UNet2DModel(sample_size=128, block_out_channels=(128, 256, 512), down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
                   up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"))
images = DDIMPipeline(unet, DDIMScheduler()).to("cuda")(batch_size=number(8), num_inference_steps=10).images
print(len(images), images[0].size)
