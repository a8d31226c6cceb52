# SPDX-License-Identifier: MIT
"""A batch or length that --largest tries, of the command line's last word."""
import sys


def number(otherwise):
    return int(sys.argv[-1]) if sys.argv[-1].isdigit() else otherwise
