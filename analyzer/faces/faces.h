/* SPDX-License-Identifier: MIT */
/* Faces lay out a document (analyzer/answer/answer.h) and know nothing else of the run.  A new one is one file here. */
#pragma once

#include <stdio.h>

#include "analyzer/answer/answer.h"

struct sl_face_style {
	bool colour, ascii; /* escape sequences; no character beyond ASCII */
	bool fenced;	    /* in a block of code between ``` */
	bool all;	    /* every verdict and note; else one verdict in SL_FACE_LINES lines */
	bool brief;	    /* without table, `also` and `next` */
	unsigned columns;
	const char *saved; /* the folder that was written; NULL: none */
};
#define SL_FACE_LINES	24
#define SL_FACE_COLUMNS 80 /* of a sentence at most: longer lines are hard to read */

/* The terminal, a block of Markdown, a CI's log. */
void sl_face_terminal(const struct sl_answers *answers, FILE *out, const struct sl_face_style *style);

/* A verdict on one line, for lists and CI systems: "LEAK: a.py:8 keeps 2 MiB of every step; why: ...; fix: detach it"; free it. */
char *sl_face_line(const struct sl_answer *answer);

/*
 * Writes the document as the member `key` of the open object, with its figures as numbers.  schemas/report.schema.json has the
 * members.  Each command that takes the paths of the run ends with `paths`, unless they are "".
 */
struct sl_json;
void sl_face_json(struct sl_json *j, const char *key, const struct sl_answers *answers, const char *paths);
