/* SPDX-License-Identifier: MIT */
/*
 * An analysis reads replayed processes and writes its findings into them.  To add one: a file here with a const
 * descriptor, its names in list.c and meson.build (doc/add-an-analysis.md).
 */
#pragma once

#include <stdbool.h>

struct sl_process;
struct sl_report;

struct sl_analysis {
	const char *name;
	void (*process)(struct sl_process *process); /* after its replay, on the thread that replayed it; or NULL */
	void (*run)(struct sl_report *report);	     /* after all processes, main thread; or NULL */
	bool of_windows; /* it is also asked about a snapshot of PyTorch's, which knows its window only */
};

/* In the order in which they run; ended by NULL. */
extern const struct sl_analysis *const sl_analyses[];

extern const struct sl_analysis sl_analysis_kept; /* its `process` is asked about running processes too */
