/* SPDX-License-Identifier: MIT */
/*
 * Exit statuses of stormlog-index.  A pack that cannot be read will never be readable; after another failure a new try may
 * succeed; FULL: the disk had no room for it.
 */
#pragma once

enum { SL_CHILD_FINE = 0, SL_CHILD_FAILED = 1, SL_CHILD_UNREADABLE = 3, SL_CHILD_FULL = 4 };
