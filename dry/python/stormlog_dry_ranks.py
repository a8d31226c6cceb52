# SPDX-License-Identifier: MIT
"""One rank runs, the others are absent: stores do not wait for them, gloo is PyTorch's FakeProcessGroup, objects that others would
send are the rank's own, with the memory that they take on the device, and a starter of many processes (torchrun, accelerate launch, mp.spawn) becomes the one rank.  NCCL is ours
(nccl.c)."""
import os
import sys

import stormlog_dry
from stormlog_dry_weights import say


def own_rank():
    return int(os.environ.get("RANK", 0))


def launch(config, entrypoint, args, **_):
    """In place of torch.distributed.launcher.api.launch_agent, which has a health check from PyTorch 2.15 on."""
    per_node = config.nproc_per_node
    world = int(os.environ.get("WORLD_SIZE", config.max_nodes * per_node))
    rank = own_rank()
    say("of the %d ranks that would be started, rank %d runs; --rank N --world-size M chooses another" % (world, rank))
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank % per_node), LOCAL_WORLD_SIZE=str(per_node),
                      GROUP_RANK=str(rank // per_node), ROLE_RANK=str(rank), ROLE_WORLD_SIZE=str(world), STORMLOG_DRY_DEVICES=str(per_node),
                      TORCHELASTIC_RUN_ID="dry", TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_MAX_RESTARTS="0")
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")
    if callable(entrypoint):
        return {rank: entrypoint(*args)}
    os.execvp(entrypoint, [entrypoint, *args])


def spawns(start):
    """For torch.multiprocessing.spawn and start_processes."""
    def spawn(fn, args=(), nprocs=1, join=True, **kwargs):
        if nprocs < 2 or not join:
            return start(fn, args, nprocs, join, **kwargs)
        rank = own_rank() % nprocs
        say("of %d processes, process %d runs; --rank N --world-size M chooses another" % (nprocs, rank))
        return fn(rank, *args)

    return spawn


def stores(base):
    kept = []

    class Store(base):
        """What absent ranks would have set is there: bytes of zeros, as many as an id of NCCL has."""

        def __init__(self, *args, **kwargs):
            super().__init__()
            self.values = {}
            kept.append(self)  # C++ calls these methods only while the object of Python is there
            self.host, self.port = "localhost", 0

        def set(self, key, value):
            self.values[key] = value if isinstance(value, bytes) else str(value).encode()

        def get(self, key):
            return self.values.get(key, bytes(128))

        def add(self, key, number):
            self.values[key] = b"%d" % (int(self.values.get(key, 0)) + number)
            return int(self.values[key])

        def compare_set(self, key, expected, desired):
            if self.values.get(key, b"") == (expected if isinstance(expected, bytes) else expected.encode()):
                self.set(key, desired)
            return self.values.get(key, b"")

        def append(self, key, value):
            self.values[key] = self.values.get(key, b"") + value

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def check(self, keys):
            return all(key in self.values for key in keys)

        def wait(self, keys, timeout=None):
            pass

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def num_keys(self):
            return len(self.values)

        def has_extended_api(self):
            return True

        def set_timeout(self, timeout):
            pass

        def clone(self):
            return self

    return Store


def gloo(fake):
    """A class whose objects are PyTorch's FakeProcessGroup."""
    make = getattr(fake, "_create_internal", fake)

    class OneRank(type):
        def __call__(cls, store, rank, size, *args, **kwargs):
            return make(rank, size, *([fake.Options()] if hasattr(fake, "_create_internal") else []))

        def __instancecheck__(cls, group):
            return isinstance(group, fake)

    fake._set_sequence_number_for_group = lambda self: None
    return OneRank("ProcessGroupGloo", (), {})


def begin(torch):
    import torch.distributed as dist

    if not dist.is_available():
        return
    from torch._C import _distributed_c10d as c

    # NCCL's threads would ask a store of Python's for errors of other ranks, even while Python ends.
    os.environ.update(TORCH_NCCL_ENABLE_MONITORING="0", TORCH_NCCL_DUMP_ON_TIMEOUT="0", TORCH_NCCL_PROPAGATE_ERROR="0")
    init = dist.init_process_group

    def init_process_group(*args, device_id=None, **kwargs):
        """Without a device from which groups are split: a split cannot know how many absent ranks take part."""
        done = init(*args, **kwargs)
        if dist.get_world_size() > 1:
            say("rank %d of %d: the others are absent" % (dist.get_rank(), dist.get_world_size()))
        return done

    c10d, collectives = dist.distributed_c10d, (dist.all_gather_object, dist.gather_object, dist.broadcast_object_list, dist.scatter_object_list)
    real_all_gather, real_gather, real_broadcast, real_scatter = collectives

    def on_device(group):
        return dist.get_rank(group) >= 0 and "cpu" not in str(c10d._get_object_coll_device(group))

    def as_on_a_card(real, received, *args, **kwargs):
        """PyTorch's own function pickles, and takes its memory of the device; what it unpickles is `received`."""
        unpickles = c10d._tensor_to_object
        c10d._tensor_to_object = lambda *_: received
        stormlog_dry.quiet += 1  # the sizes that it reads are known
        try:
            real(*args, **kwargs)
        finally:
            stormlog_dry.quiet -= 1
            c10d._tensor_to_object = unpickles

    def all_gather_object(objects, own, group=None):
        if on_device(group):
            as_on_a_card(real_all_gather, own, objects, own, group)
        objects[:] = [own] * len(objects)

    def gather_object(own, objects=None, *args, **kwargs):
        if on_device(args[1] if len(args) > 1 else kwargs.get("group")):
            as_on_a_card(real_gather, own, own, objects, *args, **kwargs)
        if objects:
            objects[:] = [own] * len(objects)

    def sends(src, group, group_src):
        """True: the objects are this rank's.  Else they are told, since nobody knows their size."""
        rank = dist.get_rank() if group_src is None else dist.get_rank(group)
        source = (src or 0) if group_src is None else group_src
        if rank != source and on_device(group):
            stormlog_dry.unknown(sys._getframe(2), "objects that rank %d sends" % source)
        return rank == source

    def broadcast_object_list(objects, src=None, group=None, device=None, group_src=None):
        sends(src, group, group_src)
        if on_device(group):
            as_on_a_card(real_broadcast, None, objects, src=dist.get_rank(), group=group, device=device)

    def scatter_object_list(out, objects=None, src=None, group=None, group_src=None):
        mine = objects[min(dist.get_rank(group), len(objects) - 1)] if objects else None
        if sends(src, group, group_src) and on_device(group):
            as_on_a_card(real_scatter, mine, out, objects, src=dist.get_rank(), group=group)
        if objects:
            out[0] = mine

    store = stores(dist.Store)
    ours = [*zip((init, *collectives), (init_process_group, all_gather_object, gather_object, broadcast_object_list, scatter_object_list)),
            (c.TCPStore, store), (c.FileStore, store), (dist.monitored_barrier, lambda *args, **kwargs: None)]
    if hasattr(c, "ProcessGroupGloo") and hasattr(c, "FakeProcessGroup"):
        ours.append((c.ProcessGroupGloo, gloo(c.FakeProcessGroup)))
    for name, module in list(sys.modules.items()):
        if module is c or name.startswith("torch.distributed"):
            for key, value in list(vars(module).items()):
                for old, new in ours:
                    if value is old:
                        setattr(module, key, new)
    for name in ("spawn", "start_processes"):
        setattr(torch.multiprocessing, name, spawns(getattr(torch.multiprocessing, name)))
