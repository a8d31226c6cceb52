/* SPDX-License-Identifier: MIT */
/* Tables that several pages show. */
#ifndef SERVER_ROWS_H
#define SERVER_ROWS_H

#include "server/ask.h"
#include "server/html.h"

/* Runs of an answered query, a form to compare two of them around it. */
/* found: NULL, or how many there are in all, which is said above them. */
void sl_rows_runs(struct sl_html *page, const struct sl_ask *ask, int64_t *found);
/* Links to the pages before and after. */
void sl_rows_pages(struct sl_html *page, const struct sl_ask *ask, int64_t count);
/* What became more in the newest runs. */
void sl_rows_worse(struct sl_html *page);

#endif
