/* SPDX-License-Identifier: MIT */
/* stormlog-top: what its files share.  A view fills lines of text; the screen shows those that fit.  One thread. */
#ifndef TOP_TOP_H
#define TOP_TOP_H

#include <time.h>

#include "analyzer/follow/figures.h"
#include "analyzer/upstream/files/telemetry.h"
#include "analyzer/watch/watch.h"

enum view { VIEW_OVERVIEW, VIEW_PLACES, VIEW_TIME, VIEW_PYTORCH, VIEW_RANKS, VIEW_FINDINGS, VIEW_CALLS, VIEW_COUNT };
enum tone { TONE_PLAIN, TONE_BOLD, TONE_DIM, TONE_WARN }; /* each also told by a word or a sign: no colour is needed */

#define TOP_DEVICES 16 /* of a process */
#define ALL	    (-1)

struct line {
	char *text;
	enum tone tone;
	int process; /* that the line is about; ALL: none */
};
struct lines {
	SL_VECTOR(struct line) line;
	char header[256];
};

/* What this program remembers of a process, beside what is followed. */
struct seen {
	const struct sl_followed *followed;
	struct sl_trend trend[TOP_DEVICES];
	struct sl_growing growing;
	struct sl_live_mark mark;
	uint64_t marked_ns;
};

struct findings {
	int fd; /* of what a child says; -1: none is under way */
	long child;
	uint64_t next_ns, begun_ns;
	char *said; /* as it came, and how much; the last whole answer */
	size_t size;
	char *text;
};

struct top {
	struct sl_follow *follow;
	char **paths; /* NULL at their end */
	long pid;     /* 0: any */
	SL_VECTOR(struct seen) seen;
	enum view view;
	int process;	    /* that places and time are of; ALL: every one */
	unsigned at, first; /* selected line, first that is shown */
	char filter[64];
	bool filtering, helping, paused, ascii;
	double interval;
	uint64_t now_ns;
	struct findings findings;
	char said[160]; /* at the bottom, until the next key */
	/* top/past.c */
	struct sl_watch *watch;
	SL_VECTOR(char *) alerts;	/* oldest first, and those of telemetry before them */
	struct sl_telemetry *telemetry; /* NULL: none was named */
	/* top/page.c */
	int page_line; /* to the child that writes it; -1: there is none */
};

static inline struct sl_followed *top_process(const struct top *top, unsigned index)
{
	return sl_follow_process(top->follow, index);
}

void top_line(struct lines *lines, enum tone tone, int process, const char *format, ...) SL_PRINTF(4, 5);
void top_view(struct top *top, struct lines *lines, unsigned rows, unsigned columns);
extern const char *const top_view_names[VIEW_COUNT];
/* The place of all that grows fastest; "" where nothing does more than chance would. */
void top_growth(struct top *top, char *out, size_t size);

/* A report's findings, asked of a child every so often that it costs less than a hundredth. */
void top_findings_ask(struct top *top);
void top_findings_take(struct top *top);
void top_findings_end(struct top *top);

/* Rules that are held against everything; what they say is kept. */
void top_alerts_look(struct top *top);
/* Python Stormlog's own files.  False: there are none at the path. */
bool top_sessions_open(struct top *top, const char *path);
void top_sessions_finish(struct top *top);
void top_sessions(struct top *top, struct lines *lines);
void top_past_free(struct top *top);

/* What other frameworks than PyTorch keep in pools, in the view beside it. */
void top_pools(struct top *top, struct lines *lines);

/* report.html of this moment, by stormlog-analyze.  start: before this program gives up what it does not need. */
void top_page_start(struct top *top);
void top_page_ask(struct top *top);
void top_page_take(struct top *top);

void top_draw(struct top *top, struct lines *lines);
void top_mark(struct top *top);

#endif
