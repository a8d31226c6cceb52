# SPDX-License-Identifier: MIT
"""Learns from experience: the replay buffer lies on the device, has no bound, and fills it."""
import ctypes
import sys

rt = ctypes.CDLL("libcudart.so.12")


class DeviceError(Exception):
    pass


def to_device(nbytes):
    p = ctypes.c_void_p()
    code = rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes))
    if code:
        raise DeviceError(f"cudaMalloc({nbytes}) = {code}")
    return p


class Replay:
    def __init__(self):
        self.episodes = []

    def add(self, frames):
        self.episodes.append(to_device(frames * 84 * 84 * 4))  # CULPRIT


def play(policy, episode):
    act = to_device(5 << 20)
    rt.cudaFree(act)
    return 150 + episode % 40


def main():
    policy = [to_device(30 << 20) for _ in range(4)]
    replay = Replay()
    try:
        for episode in range(5000):
            replay.add(play(policy, episode))
    except DeviceError as error:
        sys.exit(str(error))


main()
