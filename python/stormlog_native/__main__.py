# SPDX-License-Identifier: MIT
"""python -m stormlog_native analyze --dask SCHEDULER PATH; python -m stormlog_native parquet PATH -o FOLDER;
python -m stormlog_native mcp FOLDER"""
import argparse
import sys

from . import door
from .errors import ProfilerError

LEFT_OUT = 3  # done, without what could not be read


def _analyze(options: argparse.Namespace) -> int:
    from . import cluster
    client = cluster.connect(options.dask) if options.dask else None
    print(cluster.analyze(options.path, client, options.output, options.parts, progress=sys.stderr.isatty()))
    return 0


def _parquet(options: argparse.Namespace) -> int:
    from . import parquet
    events, left_out = parquet.write(options.path, options.output)
    print("%d events in %s" % (events, options.output))
    return LEFT_OUT if left_out else 0


def _mcp(options: argparse.Namespace) -> int:
    from . import assistant
    assistant.serve(options.path)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stormlog_native")
    verbs = parser.add_subparsers(dest="verb", required=True)
    analyze = verbs.add_parser("analyze", help="the report of a folder of traces, by the workers of a Dask cluster")
    analyze.add_argument("path", metavar="PATH", help="as every worker sees it")
    analyze.add_argument("--dask", metavar="SCHEDULER", help="host:port; without it this machine does the work")
    analyze.add_argument("-o", "--output", metavar="DIR", help="default: PATH/analysis")
    analyze.add_argument("--parts", type=int, metavar="N", help="tasks (default: two for each thread of the cluster)")
    analyze.set_defaults(work=_analyze)
    parquet = verbs.add_parser("parquet", help="the events as Parquet files, run=ID/rank=N/*.parquet")
    parquet.add_argument("path", metavar="PATH")
    parquet.add_argument("-o", "--output", metavar="DIR", required=True)
    parquet.set_defaults(work=_parquet)
    mcp = verbs.add_parser("mcp", help="tools for an assistant over a folder of recordings, on standard input and output")
    mcp.add_argument("path", metavar="FOLDER")
    mcp.set_defaults(work=_mcp)
    options = parser.parse_args()
    try:
        status: int = options.work(options)
    except (ProfilerError, ImportError, OSError, MemoryError) as error:
        for text in ("out of memory" if isinstance(error, MemoryError) else str(error)).splitlines():
            print("stormlog_native: %s" % door.line(text), file=sys.stderr)
        return error.status if isinstance(error, ProfilerError) else 2
    return status


if __name__ == "__main__":
    sys.exit(main())
