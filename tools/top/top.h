/* SPDX-License-Identifier: MIT */
/* stormlog-top: what its files share.  A view fills a list of lines; the screen shows those that fit.  One thread. */
#pragma once

#include <time.h>

#include "analyzer/watch/watch.h"

enum sl_top_view { VIEW_OVERVIEW, VIEW_PLACES, VIEW_TIME, VIEW_PYTORCH, VIEW_RANKS, VIEW_FINDINGS, VIEW_CALLS, VIEW_COUNT };
enum sl_top_tone {
	TONE_PLAIN,
	TONE_BOLD,
	TONE_DIM,
	TONE_WARN
}; /* each is also shown by a word or a sign, since there may be no colour */

#define TOP_DEVICES 16 /* of a process */
#define ALL	    (-1)

struct sl_top_line {
	char *text;
	enum sl_top_tone tone;
	int process; /* index of the process that the line is about; ALL: none */
};
struct sl_top_lines {
	SL_VECTOR(struct sl_top_line) line;
	char header[256];
};

/* What this program remembers of a process in addition to what sl_follow keeps. */
struct sl_top_seen {
	const struct sl_followed *followed;
	double full_in[TOP_DEVICES]; /* seconds; not finite where nothing says that the device fills */
	struct sl_live_mark mark;
	uint64_t marked_ns;
};

struct sl_top_findings {
	int fd; /* from the child that is under way; -1: none */
	long child;
	uint64_t next_ns, begun_ns, told_ns; /* told_ns: time of the findings in `text` */
	char *output;			     /* output, size: what the child has printed so far; text: the last complete answer */
	size_t size;
	char *text;
};

struct sl_top {
	struct sl_follow *follow;
	char **paths; /* ended by NULL */
	long pid;     /* 0: any */
	SL_VECTOR(struct sl_top_seen) seen;
	enum sl_top_view view;
	int process;  /* index of the process shown in the views of places and time; ALL: every process */
	bool one_run; /* only processes of `run` are shown */
	char run[128];
	int session;	    /* only this session of Python Stormlog is shown; ALL: all are shown beside the processes */
	unsigned at, first; /* selected line, first line that is shown */
	int tabs_y, body_y; /* row of the tabs, first row of the view */
	char filter[64];
	bool filtering, helping, paused, ascii;
	double interval;
	uint64_t now_ns;
	struct sl_top_findings findings;
	char message[160]; /* message in the last line, until the next key */
	/* tools/top/past.c */
	struct sl_watch *watch;
	SL_VECTOR(char *) alerts;	/* oldest first; those from telemetry come before ours */
	struct sl_telemetry *telemetry; /* NULL: no telemetry was named */
	/* the pages that are asked for */
	int page_line; /* pipe to the child that writes pages; -1: there is none */
};

/* The view whose name is in that column of the line of names; -1: no view. */
int sl_top_tab_at(int x);

/* tools/top/views.c: what is shown of all that is followed */
#define TOP_CHOSEN_MAX 160
void sl_top_choose(struct sl_top *top, int by); /* by 1: the next run or session, -1: the previous one; behind the last comes all */
bool sl_top_shown(const struct sl_top *top, unsigned process);
void sl_top_chosen(const struct sl_top *top, char *out, size_t size); /* "run X", "session X"; "" for all */

static inline struct sl_followed *sl_top_process(const struct sl_top *top, unsigned index)
{
	return sl_follow_process(top->follow, index);
}

void sl_top_line(struct sl_top_lines *lines, enum sl_top_tone tone, int process, const char *format, ...) SL_PRINTF(4, 5);
void sl_top_view(struct sl_top *top, struct sl_top_lines *lines, unsigned rows, unsigned columns);
extern const char *const sl_top_view_names[VIEW_COUNT];
/* Bytes per second by which a process grows on a device; 0: no growth beyond chance. */
double sl_top_rate(const struct sl_top *top, unsigned index, int device);

/* Asks a child for the findings of a report, so rarely that it takes less than a hundredth of the time. */
void sl_top_findings_ask(struct sl_top *top);
void sl_top_findings_take(struct sl_top *top);
uint64_t sl_top_findings_end(struct sl_top *top); /* processor time of the child that was under way, ns */

/* Checks the alert rules and keeps what they report. */
void sl_top_alerts_look(struct sl_top *top);
/* Opens Python Stormlog's own files.  False: there are none at the path. */
bool sl_top_sessions_open(struct sl_top *top, const char *path);
void sl_top_sessions_finish(struct sl_top *top);
void sl_top_sessions(struct sl_top *top, struct sl_top_lines *lines);
/* Adds up what the session's devices held: the maximum in each column.  Returns the session's duration. */
uint64_t sl_top_session_columns(const struct sl_session *session, double *column, unsigned count);
void sl_top_past_free(struct sl_top *top);

void sl_top_draw(struct sl_top *top, struct sl_top_lines *lines);
