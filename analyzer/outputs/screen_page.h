/* SPDX-License-Identifier: MIT */
/* Layout of the terminal's summary: wrapped lines, and the blocks, each of which is in a screen_*.c of its own. */
#pragma once

#include "analyzer/outputs/output.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/owners.h"

#define SL_SCREEN_OOMS 3
struct sl_screen_page {
	struct sl_report *report;
	FILE *out;
	const struct sl_screen_style *style;
	bool said;				   /* something worth a report was printed */
	bool noted;				   /* a NOTE, or what was found of a peak, stands on the screen */
	unsigned indent;			   /* columns the heading of this line took */
	const struct sl_oom *ooms[SL_SCREEN_OOMS]; /* the errors printed so far */
	struct sl_leak_list leaking;		   /* the leaking places of the run */
	unsigned leaks_shown;			   /* number of LEAK blocks printed */
	bool round_told;			   /* it has been said what a round is */
};

/* Prints a heading, which begins a line; sl_screen_line continues it. */
enum sl_screen_tone { SL_SCREEN_PLAIN, SL_SCREEN_WARNING, SL_SCREEN_BAD };
void sl_screen_head(struct sl_screen_page *page, const char *title, enum sl_screen_tone tone);

/*
 * Prints the rest of a line: `left`, then `right` at column `at` or, if `left` is longer, after it.  What does not fit goes to
 * further lines, cut between words.  A stack in `right` ("inner < outer") loses its outer frames first.
 */
void sl_screen_line(struct sl_screen_page *page, unsigned at, const char *left, const char *right);

/* A line of text, wrapped between words. */
SL_PRINTF(2, 3) void sl_screen_say(struct sl_screen_page *page, const char *format, ...);

/* A holder of memory: size, name, and what is known of it. */
void sl_screen_owner(struct sl_screen_page *page, uint64_t bytes, const char *name, const char *right);

/* Writes the site's line and its caller, without " via HELPER". */
void sl_screen_place(struct sl_process *process, const struct sl_site *site, char *out, size_t size);

#define SL_SCREEN_WORKSPACES "cuBLAS workspaces of PyTorch"

/* Returns `blocks`, or 0 for a cuBLAS site whose largest block is at most half of that library's largest on the device. */
uint64_t sl_screen_blocks(const struct sl_process *process, const struct sl_site *site, uint64_t blocks);

/* Adds `bytes` that no site explains, as PyTorch's unused cache, CUDA graphs and unnamed pools. */
void sl_screen_rests(struct sl_owners *owners, struct sl_process *process, const struct sl_torch *torch, const char *name,
		     uint64_t bytes);

/* Libraries, and below each of them its lines with their bytes; a library's only line is printed beside it. */
void sl_screen_shares(struct sl_screen_page *page, const struct sl_owners *sorted);

/* Findings with that id, one line each, below a block; process -1: of any process. */
void sl_screen_said(struct sl_screen_page *page, const char *id, int process, int device);

/* screen_dry.c prints nothing for a real run.  The card, and that no number was computed. */
void sl_screen_dry(struct sl_screen_page *page);
/* What the device would need. */
void sl_screen_need(struct sl_screen_page *page);
/* READ: the lines that used a value which the dry run did not compute. */
void sl_screen_reads(struct sl_screen_page *page);

/* screen_changes.c: changes that would have let it fit, or would lower its peak. */
void sl_screen_changes(struct sl_screen_page *page, const struct sl_process *process);
/* screen_title.c: program, processes, hosts, time, and how they ended. */
void sl_screen_title(struct sl_screen_page *page);
/* screen_peak.c: the process that held most on a device, and what it held. */
void sl_screen_peak(struct sl_screen_page *page);
/* screen_window.c: the rest of the screen where all processes are snapshots of PyTorch's; false: they are not. */
bool sl_screen_windows(struct sl_screen_page *page);
bool sl_screen_is_windows(const struct sl_report *report);
/* Their first line. */
void sl_screen_window_title(struct sl_screen_page *page);
/* Its words beside the file's name, parts separated by three blanks: release, device, window. */
void sl_screen_window_words(char *out, size_t size, const struct sl_process *process);
#define SL_SCREEN_LEAST_PART 100 /* a row of less than one of so many parts of the tensors is not drawn */
/* Bytes of tensors at the device's peak. */
uint64_t sl_screen_window_held(const struct sl_device_state *device);
/* screen_rows.c: who held them.  window: the file has one; at_start: bytes held before it.  True: it has no stack of most. */
bool sl_screen_window_rows(struct sl_screen_page *page, struct sl_process *process, const struct sl_device_state *device,
			   bool window, uint64_t at_start);
/* screen_peak.c: the course of a line, as a few signs. */
void sl_screen_spark(char *out, size_t size, const struct sl_screen_page *page, const struct sl_line *line);
/* screen_leaks.c: what is kept, what each entry of a label adds, what is never freed. */
void sl_screen_kept(struct sl_screen_page *page);
/* How fast and since when a place leaks that the cause of an error names: in the block of the error, and nowhere else. */
void sl_screen_leaks_within(struct sl_screen_page *page, struct sl_process *process, const char *cause);
void sl_screen_growth(struct sl_screen_page *page);
void sl_screen_leaks(struct sl_screen_page *page);

/* screen_hidden.c: the device with the largest hidden peak, by name. */
void sl_screen_hidden(struct sl_screen_page *page);

/* screen_next.c: what to ask next; verb NULL: what suits the run. */
void sl_screen_go_on(struct sl_screen_page *page, const char *verb);

/* screen_ranks.c: groups of ranks that do the same, and outliers; nothing where all are alike. */
void sl_screen_ranks(struct sl_screen_page *page);
/* screen_oom.c: the out-of-memory errors. */
void sl_screen_ooms(struct sl_screen_page *page);
/* One error: the first attempt of its group. */
void sl_screen_oom(struct sl_screen_page *page, struct sl_process *process, size_t index);
