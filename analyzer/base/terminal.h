/* SPDX-License-Identifier: MIT */
/*
 * Texts and tables for people.  They keep to a width: COLUMNS, else the terminal's, else 80.  They have no colour in a pipe or with
 * NO_COLOR.  They lose no word: a text that is too wide goes on in another line.  Texts pass through SL_ESCAPE_LINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analyzer/base/vector.h"

#define SL_TERMINAL_COLUMNS_MAX 400

enum sl_colour { SL_COLOUR_NONE, SL_COLOUR_RED, SL_COLOUR_YELLOW, SL_COLOUR_GREEN, SL_COLOUR_PLACE, SL_COLOUR_DIM };

struct sl_terminal {
	FILE *out;
	unsigned columns;
	bool colour, ascii; /* escape sequences; no character beyond ASCII */
};

/* True: a line on which can be overwritten: TERM is not "dumb". */
bool sl_terminal_rewrites(int fd);

/* Writes over the line on standard error how much of a file was read.  done UINT64_MAX: empties the line. */
void sl_terminal_reading(const char *path, uint64_t done, uint64_t bytes);

/* Standard output as it is. */
struct sl_terminal sl_terminal_here(void);

/* Columns that `bytes` of a text take, counted in code points. */
unsigned sl_terminal_width(const char *text, size_t bytes);
/*
 * Bytes of the text that fit into `room` columns.  The cut is at a space, but not inside "12 MiB" or "10 307".  In a word that is
 * longer than the room, the cut is behind a comma or slash, or where the room ends.
 */
size_t sl_terminal_fitting(const char *text, unsigned room);

void sl_terminal_put(const struct sl_terminal *to, enum sl_colour colour, const char *text);
/* A sentence that begins at column `at`, where the line stands; further lines begin at `hang`.  Ends the line. */
void sl_terminal_line(const struct sl_terminal *to, unsigned at, unsigned hang, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* "WORD   sentence": the answer of a verb. */
void sl_terminal_head(const struct sl_terminal *to, enum sl_colour colour, const char *word, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * A table.  `columns` has a letter for each: l left, r right, w left and wrapped where the width ends.  Titles are the first row.
 * A last column w without room goes below each row.  Other columns without room make a second table with the same first column,
 * unless they are empty.
 */
struct sl_cell {
	char *text;
	enum sl_colour colour;
	bool under;    /* a line below the row, and no cell of it */
	unsigned hang; /* of further lines of its text */
};
struct sl_cells {
	const char *columns;
	SL_VECTOR(struct sl_cell) cell;
};
void sl_cells_put(struct sl_cells *table, enum sl_colour colour, const char *format, ...) __attribute__((format(printf, 3, 4)));
void sl_cells_under(struct sl_cells *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints and frees it; indent: blanks before each line. */
void sl_cells_print(struct sl_cells *table, const struct sl_terminal *to, unsigned indent);
