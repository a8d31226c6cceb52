# SPDX-License-Identifier: MIT
"""On AMD: a recommender keeps the embedding rows of every user it has met."""
import ctypes

hip = ctypes.CDLL("libamdhip64.so.6")


def hip_check(status):
    if status:
        raise RuntimeError(f"hip error {status}")


class DeviceTensor:
    def __init__(self, nbytes):
        self._data = ctypes.c_void_p()
        hip_check(hip.hipMalloc(ctypes.byref(self._data), ctypes.c_size_t(nbytes)))

    def free(self):
        hip_check(hip.hipFree(self._data))


class Recommender:
    def __init__(self):
        self.users = {}

    def rows(self, user):
        if user not in self.users:
            self.users[user] = DeviceTensor(212_992)  # CULPRIT
        return self.users[user]

    def recommend(self, user):
        scores = DeviceTensor(1_200_000)
        self.rows(user)
        scores.free()


recommender = Recommender()
for visit in range(1400):
    recommender.recommend(visit * 17 % 5003)
for rows in recommender.users.values():
    rows.free()
