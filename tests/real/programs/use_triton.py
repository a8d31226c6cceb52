# SPDX-License-Identifier: MIT
import triton
from say import say

say("version", lambda: triton.__version__)
say("target", lambda: triton.runtime.driver.active.get_current_target())
say("device", lambda: triton.runtime.driver.active.get_current_device())
