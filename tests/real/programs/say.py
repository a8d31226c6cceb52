# SPDX-License-Identifier: MIT
"""say(name, function, *arguments): one line, with what it returned or what it raised; both must be the same with the agent."""
import re


def say(name, function, *arguments):
    try:
        text = repr(function(*arguments))
    except BaseException as error:  # JAX and Numba raise all sorts
        text = "%s: %s" % (type(error).__name__, error)
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)  # of objects: another in each run
    print("%s -> %s" % (name, text), flush=True)


def code(result):
    """The code of cuda-python's (code, value...) tuples."""
    return int(result[0])
