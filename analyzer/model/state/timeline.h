/* SPDX-License-Identifier: MIT */
/*
 * Lines over time in bounded memory.  A timeline cuts the run into at most SL_TIMELINE_BINS bins of equal width, a
 * power of two of nanoseconds; when the run outgrows them, pairs merge and the width doubles.  Each bin of a line
 * keeps minimum, maximum, time and site of the maximum, and the time-weighted mean: any picture narrower than the
 * bins is exact in its extremes.
 *
 * Bins begin at multiples of their width in CLOCK_MONOTONIC of the process, so the bins of two processes of a run fall together.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_TIMELINE_BINS 2048
#define SL_NO_SITE	 UINT32_MAX

struct sl_bin {
	uint64_t min, max, max_ns;
	double area;   /* value x ns inside the bin */
	uint64_t last; /* value at the bin's end */
	/* site of the event that made the maximum, in this bin or before; SL_NO_SITE: a free, or no event */
	uint32_t max_site;
};

enum sl_line_what {
	SL_LINE_KIND,	   /* live bytes of one kind on one device */
	SL_LINE_KNOWN,	   /* device, pool, vmm, array and graph together on one device */
	SL_LINE_LIBRARY,   /* the same for one library */
	SL_LINE_ALLOCATED, /* SL_LINE_ALLOCATED, SL_LINE_RESERVED: as PyTorch reports */
	SL_LINE_RESERVED,
	SL_LINE_USED, /* the whole device, by samples */
	/* SL_LINE_USED minus the most that this process held while the sample was taken, minus SL_LINE_OTHERS */
	SL_LINE_HIDDEN,
	/* what others held by the driver's figures; where it has none, what other recorded processes held (report/devices.c) */
	SL_LINE_OTHERS,
	SL_LINE_SAMPLES, /* how many samples of hidden memory there are so far; not drawn */
	SL_LINE_RSS,
	SL_LINE_CGROUP,
	SL_LINE_LABEL, /* as SL_LINE_LIBRARY, for what was allocated under one label */
};

struct sl_line {
	enum sl_line_what what;
	int device; /* -1: none */
	int index;  /* kind, library, or index into labelled */
	bool begun;
	uint32_t first, bin; /* bins [first, bin] are valid; `bin` is still open */
	uint64_t value, last_ns;
	uint32_t site; /* site of the event that raised the line to `value`; SL_NO_SITE: it fell */
	struct sl_bin *bins;
	uint32_t capacity; /* of bins */
};

struct sl_timeline {
	uint64_t begin_ns; /* start of bin 0; 0: nothing yet */
	uint64_t end_ns;   /* of the last change */
	unsigned shift;	   /* a bin is 1 << shift ns wide */
	uint64_t until_ns; /* end of the window that the bins cover; 0: they cover the whole run */
	unsigned bare;	   /* bits 1 << sl_line_what: lines that only keep their last value and have no bins */
	struct sl_line **lines;
	unsigned line_count;
};

/*
 * Limits the bins to [begin_ns, until_ns), with the narrowest width that fits.  To be called before the first line.  The lines
 * start with what is held at begin_ns; a line that ended before does not begin.
 */
void sl_timeline_window(struct sl_timeline *timeline, uint64_t begin_ns, uint64_t until_ns);

/* Adds a line. */
struct sl_line *sl_timeline_add(struct sl_timeline *timeline, enum sl_line_what what, int device, int index);
/* Adds a line that begins as a copy of another. */
struct sl_line *sl_timeline_copy(struct sl_timeline *timeline, const struct sl_line *line, enum sl_line_what what);
/* The line has not begun: what it showed so far is dropped. */
static inline void sl_timeline_restart(struct sl_line *line)
{
	line->begun = false;
	line->value = 0;
}
struct sl_line *sl_timeline_find(const struct sl_timeline *timeline, enum sl_line_what what, int device, int index);

/* Slow part of sl_timeline_set: opens bins up to the one of time_ns.  False: the line has none. */
bool sl_timeline_advance(struct sl_timeline *timeline, struct sl_line *line, uint64_t time_ns);

/* The line has `value` from time_ns on; times do not go back. */
static inline void sl_timeline_set(struct sl_timeline *timeline, struct sl_line *line, uint64_t time_ns, uint64_t value,
				   uint32_t site)
{
	struct sl_bin *bin;

	if (!line->begun || (time_ns - timeline->begin_ns) >> timeline->shift != line->bin) {
		if (!sl_timeline_advance(timeline, line, time_ns)) {
			line->value = value;
			return;
		}
	}
	bin = &line->bins[line->bin];
	bin->area += (double)line->value * (double)(time_ns - line->last_ns);
	line->last_ns = time_ns;
	if (value != line->value)
		line->site = value > line->value ? site : SL_NO_SITE;
	line->value = value;
	bin->last = value;
	if (value > bin->max) {
		bin->max = value;
		bin->max_ns = time_ns;
		bin->max_site = site;
	} else if (value < bin->min) {
		bin->min = value;
	}
}

/* Closes all lines at the end of the run. */
void sl_timeline_end(struct sl_timeline *timeline, uint64_t time_ns);

/* The mean of the bin around time_ns; exact where the line is constant there. */
double sl_timeline_at(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t time_ns);

/* The minimum and the maximum of the bins that [begin_ns, end_ns] touches. */
uint64_t sl_timeline_min(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t begin_ns, uint64_t end_ns);
uint64_t sl_timeline_max(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t begin_ns, uint64_t end_ns);

void sl_timeline_free(struct sl_timeline *timeline);
