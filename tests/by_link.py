# SPDX-License-Identifier: MIT
"""by_link.py CLONE LINK COMMAND...: runs a test with the path of the clone replaced by that of a link to it."""
import os
import sys

clone, link, *argv = sys.argv[1:]
# Make relative paths absolute: they would lead to the real folder, not to the link.
argv = [os.path.abspath(word) if os.path.exists(word) else word for word in argv]
environment = {name: value.replace(clone, link) for name, value in os.environ.items()}
os.execvpe(argv[0].replace(clone, link), [word.replace(clone, link) for word in argv], environment)
