/* SPDX-License-Identifier: MIT */
/* Exit statuses of stormlog-index: a pack that cannot be read never will be, what failed may be tried again. */
#ifndef SERVER_CHILD_CHILD_H
#define SERVER_CHILD_CHILD_H

enum { SL_CHILD_FINE = 0, SL_CHILD_FAILED = 1, SL_CHILD_UNREADABLE = 3 };

#endif
