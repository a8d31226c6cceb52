#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fetch the headers of NVIDIA's CUDA 11, 12 and 13 runtime packages from PyPI into a folder and compare the rows.

Exits 77 where they cannot be had.
"""
import os
import subprocess
import sys
import zipfile

PACKAGES = ["nvidia-cuda-runtime-cu11==11.8.89", "nvidia-cuda-runtime-cu12==12.0.146", "nvidia-cuda-runtime-cu12==12.9.79",
            "nvidia-cuda-runtime"]


def fetch(package, folder):
    target = os.path.join(folder, package)
    if os.path.isdir(target):
        return True
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", target + ".part", package]
    try:
        if subprocess.run(download, capture_output=True, timeout=120).returncode:
            return False
    except (OSError, subprocess.TimeoutExpired):
        return False
    for wheel in os.listdir(target + ".part"):
        with zipfile.ZipFile(os.path.join(target + ".part", wheel)) as archive:
            archive.extractall(target + ".part")
    os.rename(target + ".part", target)
    return True


def main():
    folder = os.path.abspath(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    have = [package for package in PACKAGES if fetch(package, folder)]
    if not have:
        print("PyPI cannot be reached, or has none of", *PACKAGES)
        return 77
    for package in set(PACKAGES) - set(have):
        print("not fetched:", package)
    check = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_rows.py")
    globs = [word for package in have for word in ("--cuda", os.path.join(folder, package, "nvidia/*/include"))]
    return subprocess.run([sys.executable, check, *globs]).returncode


if __name__ == "__main__":
    sys.exit(main())
