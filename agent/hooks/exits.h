/* SPDX-License-Identifier: MIT */
#pragma once

/* Our wrapper of that function of the C library; NULL: we have none. */
void *sl_exits_wrapper(const char *name);
