/* SPDX-License-Identifier: MIT */
/*
 * The report page of a run and of two runs compared, and the data that it asks for.  The page is ours and the same for every
 * run; the data is what a child made of packs, stored as gzip of msgpack and sent as it is.  A build without the interactive
 * page sends the plain one, which a child made whole.
 */
#pragma once

#include "analyzer/catalogue/card.h"
#include "server/request.h"

void sl_view_report(struct sl_request *request, const struct sl_card *card); /* /runs/N/report */
void sl_view_data(struct sl_request *request, const struct sl_card *card);   /* /api/v1/runs/N/page?from=&to= */
void sl_view_compare(struct sl_request *request);			     /* /compare?before=N&after=N */
void sl_view_changes(struct sl_request *request);			     /* /api/v1/compare?before=N&after=N */

/* The page, made by analyzer/outputs/html/bundle.py: gzip of HTML; the policy lets only its own script run. */
extern const unsigned char sl_served_page[];
extern const char sl_served_policy[];
extern const size_t sl_served_page_size;
