# SPDX-License-Identifier: MIT
"""Two forked workers load images into pinned memory; the data set they were given remembers every sample it made."""
import multiprocessing

from images.dataset import Images
from images.pinned import pinned

AHEAD = 4  # samples that are asked for before they are needed


def worker_loop(dataset, tasks, results):
    while (key := tasks.get()) is not None:
        results.put(dataset[key])


def train():
    context = multiprocessing.get_context("fork")
    dataset = Images(400)
    results = context.Queue()
    tasks = [context.Queue() for _ in range(2)]
    workers = [context.Process(target=worker_loop, args=(dataset, queue, results)) for queue in tasks]
    for worker in workers:
        worker.start()
    staging = [pinned(4 << 20) for _ in range(3)]
    for step in range(AHEAD):
        tasks[step % 2].put(step)
    for step in range(len(dataset)):
        results.get()
        if step + AHEAD < len(dataset):
            tasks[step % 2].put(step + AHEAD)
        batch = pinned(3 << 20)
        batch.free()
    for queue in tasks:
        queue.put(None)
    for worker in workers:
        worker.join()
    for buffer in staging:
        buffer.free()


train()
