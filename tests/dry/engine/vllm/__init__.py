# SPDX-License-Identifier: MIT
__version__ = '9.9'
