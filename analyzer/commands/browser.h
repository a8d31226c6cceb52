/* SPDX-License-Identifier: MIT */
/* Opens the page that a verb has written in the reader's browser. */
#pragma once

/*
 * Prepares to open `folder`'s report.html: starts a process that never sees the trace and waits for the
 * request. To be called before sl_begin.
 */
void sl_browser_start(const char *folder);
void sl_browser_open(void);
