/* SPDX-License-Identifier: MIT */
/* Tables that several pages show. */
#pragma once

#include "server/ask.h"
#include "server/html.h"

/*
 * The runs of an answered query as a form, whose button compares two of them.  found: the page shows how many match in all; NULL:
 * it does not.
 */
void sl_rows_runs(struct sl_html *page, const struct sl_ask *ask, int64_t *found);
/* Links to the previous and the next page. */
void sl_rows_pages(struct sl_html *page, const struct sl_ask *ask, int64_t count);
/* What grew in the newest runs. */
void sl_rows_worse(struct sl_html *page);
