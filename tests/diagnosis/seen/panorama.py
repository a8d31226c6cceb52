# SPDX-License-Identifier: MIT
"""Photographs are scaled one by one. One of them is a panorama."""
import sys

from images.device import Image, release


def blur(image):
    kernel = Image.of(64, 64)
    spectrum = Image.of(image.width * 2, image.height * 2, channels=8)  # CULPRIT
    release(kernel, spectrum)


def scale(width, height):
    photograph = Image.of(width, height)
    blur(photograph)
    small = Image.of(width // 4, height // 4)
    release(photograph, small)


for number in range(150):
    sizes = (22000, 9000) if number == 131 else (1600 + number % 7 * 100, 1200)
    try:
        scale(*sizes)
    except MemoryError as error:
        print("gave up at photograph", number, error)
        sys.exit(1)
