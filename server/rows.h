/* SPDX-License-Identifier: MIT */
/* Tables that several pages show. */
#pragma once

#include "server/ask.h"
#include "server/html.h"

/* The runs of an answered query, in a form that compares two of them.  found: how many match in all, shown above them; or NULL. */
void sl_rows_runs(struct sl_html *page, const struct sl_ask *ask, int64_t *found);
/* Links to the previous and the next page. */
void sl_rows_pages(struct sl_html *page, const struct sl_ask *ask, int64_t count);
/* What grew in the newest runs. */
void sl_rows_worse(struct sl_html *page);
