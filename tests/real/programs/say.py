# SPDX-License-Identifier: MIT
"""say(name, function, *arguments) prints a line with what the call returned or raised, which must be the same with the agent."""
import re


def say(name, function, *arguments):
    try:
        text = repr(function(*arguments))
    except BaseException as error:  # JAX and Numba raise many kinds
        text = "%s: %s" % (type(error).__name__, error)
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)  # addresses of objects differ in each run
    print("%s -> %s" % (name, text), flush=True)


def code(result):
    """The code of cuda-python's (code, value...) tuples."""
    return int(result[0])
