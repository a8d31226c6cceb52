# SPDX-License-Identifier: MIT
"""ranks.py COUNT COMMAND...: a job launcher in small. Starts the command COUNT times; its exit status is the worst of theirs."""
import os
import subprocess
import sys

count = int(sys.argv[1])
children = []
for rank in range(count):
    place = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count))
    children.append(subprocess.Popen(sys.argv[2:], env=place))
sys.exit(max(abs(child.wait()) for child in children))
