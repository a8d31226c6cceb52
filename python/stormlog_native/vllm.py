# SPDX-License-Identifier: MIT
"""vLLM's KV cache over time, from its event stream: python -m stormlog_native.vllm [ENDPOINT] [-o FILE] [--bytes-per-block N]

The server publishes the contents of its cache if started with --kv-events-config '{"enable_kv_cache_events": true}'.  Blocks are
indices into one tensor, so no recorder sees them.  Writes a line of JSON for each batch: {"timestamp_ns", "rank", "blocks", "tokens",
"bytes"}; bytes is null without --bytes-per-block.  Needs pyzmq and msgpack."""
from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from . import door, output
from .errors import ConfigurationError, ProfilerError

FIELDS = {"BlockStored": ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys",
                          "group_idx"),
          "BlockRemoved": ("block_hashes", "medium", "group_idx"), "AllBlocksCleared": ()}
NEEDED = {"BlockStored": ("block_hashes", "block_size"), "BlockRemoved": ("block_hashes",), "AllBlocksCleared": ()}


class UnknownForm(ValueError):
    """The stream has a form that is not known here, so what the cache holds is unknown."""


def _event(event: Any) -> Tuple[str, Dict[str, Any]]:
    """Kind and members of an event, which is a map, in older releases an array."""
    if isinstance(event, dict):
        kind, members = str(event.get("type")), event
    elif isinstance(event, (list, tuple)) and event:
        kind, members = str(event[0]), dict(zip(FIELDS.get(str(event[0]), ()), event[1:]))
    else:
        raise UnknownForm("an event that is neither a map nor an array")
    if kind not in NEEDED:
        raise UnknownForm("an event %s" % kind)
    lacking = [name for name in NEEDED[kind] if name not in members]
    if lacking:
        raise UnknownForm("%s without %s" % (kind, lacking[0]))
    return kind, members


def _batch(batch: Any) -> Tuple[float, List[Any], Optional[int]]:
    """Time, events and rank of a batch, which is a map, in older releases an array."""
    ts, events, rank = (None, None, None)
    if isinstance(batch, dict):
        ts, events, rank = batch.get("ts"), batch.get("events"), batch.get("data_parallel_rank")
    elif isinstance(batch, (list, tuple)):
        ts, events, rank = (list(batch) + [None] * 3)[:3]
    if not isinstance(ts, (int, float)) or not isinstance(events, (list, tuple)):
        raise UnknownForm("a batch without time and events")
    return ts, list(events), rank


class Cache:
    """What one rank's cache holds on the GPU."""

    def __init__(self) -> None:
        self.blocks: Dict[Any, int] = {}  # {(hash, group): tokens}

    def apply(self, event: Any) -> None:
        kind, members = _event(event)
        if members.get("medium") not in (None, "GPU"):  # a copy elsewhere
            return
        keys = [(bytes(one) if isinstance(one, (bytes, bytearray)) else one, members.get("group_idx"))
                for one in members.get("block_hashes", ())]
        if kind == "BlockStored":
            self.blocks.update((key, int(members["block_size"])) for key in keys)
        elif kind == "BlockRemoved":
            for key in keys:
                self.blocks.pop(key, None)
        elif kind == "AllBlocksCleared":
            self.blocks.clear()


def occupancy(payloads: Iterable[bytes], bytes_per_block: Optional[int] = None) -> Iterator[Dict[str, Any]]:
    """A line for each batch of the stream."""
    import msgpack
    return _lines(payloads, msgpack.unpackb, bytes_per_block)


def _lines(payloads: Iterable[bytes], unpack: Callable[..., Any], bytes_per_block: Optional[int]) -> Iterator[Dict[str, Any]]:
    caches: Dict[int, Cache] = {}
    for payload in payloads:
        ts, events, rank = _batch(unpack(payload, strict_map_key=False))
        cache = caches.setdefault(rank or 0, Cache())
        for event in events:
            cache.apply(event)
        blocks = len(cache.blocks)
        yield {"timestamp_ns": int(ts * 1e9), "rank": rank or 0, "blocks": blocks, "tokens": sum(cache.blocks.values()),
               "bytes": blocks * bytes_per_block if bytes_per_block else None}


def subscribe(endpoint: str = "tcp://localhost:5557", topic: str = "") -> Iterator[bytes]:
    """Connects; then payloads without end.  A gap in their numbers is reported on stderr: from then until it is cleared, the cache is unknown."""
    import zmq
    socket = zmq.Context.instance().socket(zmq.SUB)
    try:
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        raise ConfigurationError("%s: %s" % (endpoint, error)) from error
    socket.setsockopt_string(zmq.SUBSCRIBE, topic)
    return _payloads(socket)


def _payloads(socket: Any) -> Iterator[bytes]:
    expected: Optional[int] = None
    while True:
        _, sequence, payload = socket.recv_multipart()
        number = int.from_bytes(sequence, "big")
        if expected is not None and number != expected:
            sys.stderr.write("vllm: %d batches were lost before number %d\n" % (number - expected, number))
        expected = number + 1
        yield payload


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m stormlog_native.vllm", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("endpoint", nargs="?", default="tcp://localhost:5557")
    parser.add_argument("-o", "--output", default="-")
    parser.add_argument("--topic", default="")
    parser.add_argument("--bytes-per-block", type=int)
    parser.add_argument("--batches", type=int, help="end after so many")
    options = parser.parse_args(argv)
    try:
        lines = occupancy(subscribe(options.endpoint, options.topic), options.bytes_per_block)
        out = sys.stdout if options.output == "-" else output.growing(options.output)
        for number, line in enumerate(lines, 1):
            out.write(json.dumps(line) + "\n")
            out.flush()
            if number == options.batches:
                break
    except KeyboardInterrupt:
        pass
    except UnknownForm as error:
        sys.stderr.write("vllm: this release publishes what is not known here: %s. Nothing more is read.\n" % error)
        return 1
    except (ImportError, ProfilerError, OSError) as error:
        sys.stderr.write("vllm: %s\n" % door.line("%s: pip install pyzmq msgpack" % error if isinstance(error, ImportError) else str(error)))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
