# SPDX-License-Identifier: MIT
from images.pinned import pinned


class Images:
    def __init__(self, count):
        self.count = count
        self.seen = {}

    def __getitem__(self, key):
        sample = pinned(147456)  # CULPRIT
        self.seen[key] = sample  # CULPRIT
        return key

    def __len__(self):
        return self.count
