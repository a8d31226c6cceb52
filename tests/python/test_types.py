#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""mypy --strict finds no error in the package, and in a user's script exactly the three that are there."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import torch_venv

PYTHON = os.path.join(torch_venv.ROOT, "python")
MYPY = torch_venv.python("mypy")
USER = '''
import stormlog_native as sn
from stormlog_native import TFMemoryProfiler, profile_function, sent

@profile_function
def forward(x: int) -> int: return x

@profile_function(name="other")
def backward(x: int) -> int: return x

@sent
def train() -> str: return ""

@sent(to="http://localhost:1")
def test() -> str: return ""

@TFMemoryProfiler().profile_function
def layer(x: int) -> int: return x

with sn.range("forward", batch_size=3):
    wrong: str = forward(1)
    wrong = backward(1)
    wrong = layer(1)
    right: str = train() + test()
'''


def mypy(*arguments, of=PYTHON):
    with tempfile.TemporaryDirectory() as cache:
        return subprocess.run([MYPY, "-m", "mypy", "--python-executable", sys.executable, "--cache-dir", cache, *arguments], cwd=of, stdout=subprocess.PIPE, text=True)


whole = mypy("--config-file", "pyproject.toml", "stormlog_native")
with tempfile.TemporaryDirectory() as folder:  # decorated functions of a user's script keep their types
    with open(os.path.join(folder, "user.py"), "w") as file:
        file.write(USER)
    os.symlink(os.path.abspath(os.path.join(PYTHON, "stormlog_native")), os.path.join(folder, "stormlog_native"))
    user = mypy("--strict", "--follow-imports", "silent", "user.py", of=folder)
print(whole.stdout, user.stdout, sep="")
sys.exit(whole.returncode or user.stdout.count("error:") != 3 or user.stdout.count("[assignment]") != 3)
