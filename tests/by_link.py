# SPDX-License-Identifier: MIT
"""Runs a test that sees the clone by a link: by_link.py CLONE LINK COMMAND..."""
import os
import sys

clone, link, *argv = sys.argv[1:]
# What is relative would be looked for where the working folder really is.
argv = [os.path.abspath(word) if os.path.exists(word) else word for word in argv]
environment = {name: value.replace(clone, link) for name, value in os.environ.items()}
os.execvpe(argv[0].replace(clone, link), [word.replace(clone, link) for word in argv], environment)
