/* SPDX-License-Identifier: MIT */
/*
 * An output turns a report into bytes.  To add one: a file here with a const descriptor, a line in list.c
 * (doc/add-an-output.md).  Outputs run on the main thread, after every analysis.
 */
#pragma once

#include <limits.h>

#include "analyzer/faces/faces.h"
#include "analyzer/report/held_by.h"
#include "analyzer/report/report.h"

/*
 * Replaces the folder of an analysis.  The new one is made beside it, under a name that begins with a dot, and takes its place
 * when it is whole: a reader sees the old one or the new one.
 *
 * Only a folder that Stormlog wrote is replaced: one with its report.json, or in which no file has a byte, as a machine that dies
 * may leave it.  Files of others in it stay where they are; then our files are exchanged one by one.
 */

struct sl_destination {
	char folder[PATH_MAX];	  /* as the user named it, without trailing slashes */
	char made[PATH_MAX + 16]; /* where files are written after sl_destination_begin */
	char why[3 * PATH_MAX];	  /* a sentence for people after a failure */
	bool shared;		  /* files of others are in it */
};

/*
 * True: `folder` may be made or replaced. inputs: the paths that are read, ended by NULL; neither they nor folders that contain
 * them may be replaced.
 */
bool sl_destination_choose(struct sl_destination *place, const char *folder, char *const *inputs);

/* Makes the folder beside its place, and the parents of the place. */
bool sl_destination_begin(struct sl_destination *place);

/* Moves it to its place. */
bool sl_destination_end(struct sl_destination *place);

/* Removes what was begun. */
void sl_destination_drop(struct sl_destination *place);

struct sl_output {
	const char *name; /* name of the file or folder inside analysis/: report.json, telemetry */
	/* One of the two functions.  False: an error of the file system, in errno. */
	bool (*file)(struct sl_report *report, FILE *out);
	bool (*folder)(struct sl_report *report, const char *path); /* `path` does not exist yet; made when needed */
	void (*prepare)(void);					    /* opens what it needs outside of the inputs; NULL: nothing */
};

/* What makes up analysis/, in the order of writing; NULL ends it. */
extern const struct sl_output *const sl_outputs[];
extern const struct sl_output sl_output_html;

/* Limit of a page's bytes, for both kinds of build.  0: the default. */
static inline uint64_t sl_html_most(uint64_t asked)
{
	return asked ? asked : 8u << 20;
}

/*
 * What a server keeps of a run for its page: the data of report.html, as gzip of msgpack (doc/report-page.md), and for a window of
 * time only the lines.  A build with the plain page writes that page.
 */
bool sl_html_data(struct sl_report *report, FILE *out);
bool sl_html_lines(struct sl_report *report, FILE *out);

/* report.html for Stormlog's own files: the selected session.  max_bytes: as above. */
struct sl_telemetry;
bool sl_html_telemetry(const struct sl_telemetry *telemetry, const char *path, uint64_t max_bytes, FILE *out);

/* A page of what changed between runs (analyzer/gate/gate.h).  A run's processes are added while its report is open; `share`
 * is one divided by the runs of its side.  paths: those of both sides, counts[0] before and counts[1] after; max_bytes as above. */
struct sl_html_changes;
struct sl_differences;
struct sl_because;
struct sl_html_changes *sl_html_changes_new(void);
void sl_html_changes_add(struct sl_html_changes *changes, struct sl_process *process, bool after, double share);
bool sl_html_changes_write(struct sl_html_changes *changes, const struct sl_differences *differences,
			   const struct sl_because *because, char *const *paths, const unsigned *counts, uint64_t max_bytes,
			   FILE *out);
bool sl_html_changes_data(struct sl_html_changes *changes, const struct sl_differences *differences, char *const *paths,
			  const unsigned *counts, FILE *out); /* only the data, as above */
void sl_html_changes_free(struct sl_html_changes *changes);

/* What the user told about the run, by --meta or from inside the program, as members of the open object. */
struct sl_json;
void sl_output_metadata(struct sl_json *j, const struct sl_model *model);
/* KEY=VALUE texts as an object; the first value of a key counts. */
void sl_output_pairs(struct sl_json *j, const char *key, const struct sl_model *model, const uint32_t *pairs, unsigned count);

/* Members of an object that is open, as report.json has them of a process or a device. */
struct sl_json_frames;
void sl_json_identity(struct sl_json *j, const struct sl_process *process); /* session_id to damaged */
void sl_json_figures(struct sl_json *j,
		     const struct sl_process *process); /* in_flight, memory, apis, libraries, pytorch, changes */
void sl_json_labels(struct sl_json *j, struct sl_json_frames *frames, struct sl_process *process); /* NULL: without held_by */
void sl_json_names(struct sl_json *j, const struct sl_model *model);
void sl_json_device(struct sl_json *j, const struct sl_report *report, const struct sl_shared_device *device);
void sl_json_holder(struct sl_json *j, const char *key, const struct sl_held_by *holder);

/* Appends a process, as in report.json, to the open array; frames of its stacks to the table. */
void sl_json_process(struct sl_json *j, struct sl_json_frames *frames, struct sl_process *process);

/* Begins report.json, telemetry/ or oom/, and limits its bytes by the size of the run's files (analyzer/base/budget.h). */
void sl_outputs_limit(const struct sl_report *report);

/* A sentence about what this limit cut or left out; NULL: nothing. */
const char *sl_outputs_lost(char *text, size_t size);

/* report.json, for --json */
bool sl_json_report(struct sl_report *report, FILE *out);

/* The document of the run as text. */
void sl_screen_report(struct sl_report *report, FILE *out, const struct sl_face_style *style);

/* Stacks in JSON.  A document has a table of frames, since many stacks of a run share them; a stack is numbers of its rows. */

/* All zeroes is an empty table. */
struct sl_json_frames {
	struct sl_map numbers, texts;
	SL_VECTOR(struct sl_stack_frame) list;
	struct sl_json *row;
};

/* Writes the member "stack", innermost frame first: numbers of the table's rows; without a table the frames themselves.
 * process NULL: an empty stack. */
void sl_json_stack(struct sl_json *j, struct sl_json_frames *table, struct sl_process *process, struct sl_stack stack);
