/* SPDX-License-Identifier: MIT */
/* What a card may take beyond the size that a rule of ours gave. */
#pragma once

#include <stdint.h>

/*
 * `bytes` more may be held at one time for `what` ("workspaces of cuDNN"). The trace keeps the largest, and NEED of the screen
 * has it. Any thread.
 */
void sl_dry_unsure(const char *what, int64_t bytes);
