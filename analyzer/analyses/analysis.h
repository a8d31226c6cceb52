/* SPDX-License-Identifier: MIT */
/*
 * An analysis reads replayed processes and writes its findings into them.  To add one: a file here with a const
 * descriptor, its names in list.c and meson.build (doc/add-an-analysis.md).
 */
#pragma once

#include <stdbool.h>

struct sl_device_state;
struct sl_process;
struct sl_report;

struct sl_analysis {
	const char *name;
	void (*process)(struct sl_process *process); /* after its replay, on the thread that replayed it; or NULL */
	/* After all processes, on the main thread; each may be NULL.  `run` comes after the others. */
	void (*find_in_process)(struct sl_report *report, unsigned process);
	void (*find_on_device)(struct sl_report *report, unsigned process, const struct sl_device_state *device);
	void (*run)(struct sl_report *report);
	bool of_windows; /* it is also asked about a snapshot of PyTorch's, which knows its window only */
};

/* In the order in which they run; ended by NULL. */
extern const struct sl_analysis *const sl_analyses[];

extern const struct sl_analysis sl_analysis_leaks_by_line; /* its `process` is asked about running processes too */
