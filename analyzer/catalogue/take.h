/* SPDX-License-Identifier: MIT */
/* The card of a run that was replayed, and its measures back from it. */
#ifndef ANALYZER_CATALOGUE_TAKE_H
#define ANALYZER_CATALOGUE_TAKE_H

#include "analyzer/catalogue/card.h"
#include "analyzer/gate/measure.h"
#include "analyzer/report/report.h"

/* Fills an initialized card from a report of one run; source: where it lies.  Main thread only: symbols are read. */
void sl_card_take(struct sl_card *card, struct sl_report *report, const char *source);

/* What a card has of the measures of its run, for who compares runs without reading them.  sl_measures_free is the caller's. */
void sl_card_measures(const struct sl_card *card, struct sl_measures *measures);

#endif
