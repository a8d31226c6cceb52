/* SPDX-License-Identifier: MIT */
/*
 * Decides when two problems are the same issue, across runs and in Stormlog's own files: same kind and same normalized
 * dimensions.
 */
#pragma once

#include "analyzer/base/arena.h"
#include "analyzer/base/value.h"

/* "issue:" and 24 hex digits of normalized dimensions; out holds 31 bytes. */
void sl_fingerprint_of(const char *kind, const struct sl_value *dimensions, char *out);

/* Dimensions as they enter a fingerprint: texts of low cardinality, lists sorted, floats to six digits. */
struct sl_value sl_fingerprint_normalize(struct sl_arena *arena, const struct sl_value *value);

/* The category of an alert's text and the stem of an error message. */
const char *sl_fingerprint_category(struct sl_arena *arena, const struct sl_value *context);
const char *sl_fingerprint_error_stem(struct sl_arena *arena, const struct sl_value *error);
