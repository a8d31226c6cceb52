/* SPDX-License-Identifier: MIT */
/*
 * Masks a ring (common/ringfile.h) in place, part by part.  What the analyzer reads of a ring stays, with its names masked: the
 * header map, whole definitions, slots of events that are not yet in the file, numbers of the head.  All else becomes zeroes, since
 * a process or a machine that died may have left text anywhere.
 */
#pragma once

#include "analyzer/exports/redact.h"
#include "common/ringfile.h"

/* Masks the SL_RINGFILE_HEAD bytes at `head`.  False: it is no ring of this version, and nothing was done. */
bool sl_redact_ring_head(struct sl_redaction *redaction, struct sl_ringfile *head);

/* Masks the SL_SEGMENT_BYTES at `bytes`.  segment: of the masked head. */
void sl_redact_ring_segment(struct sl_redaction *redaction, const struct sl_segment *segment, void *bytes);
