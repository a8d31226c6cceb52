/* SPDX-License-Identifier: MIT */
/* Makes the card of a replayed run, and measures from a card. */
#pragma once

#include "analyzer/catalogue/card.h"
#include "analyzer/gate/measure.h"
#include "analyzer/report/report.h"

/*
 * Fills an initialized card from a report of one run; source: where the run's files are.  Main thread only, since symbols are
 * read.
 */
void sl_card_take(struct sl_card *card, struct sl_report *report, const char *source);

/* The measures that a card has, for comparing runs without reading them.  The caller calls sl_measures_free. */
void sl_card_measures(const struct sl_card *card, struct sl_measures *measures);
