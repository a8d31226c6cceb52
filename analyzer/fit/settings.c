/* SPDX-License-Identifier: MIT */
/* The syntax is PyTorch's: "key:value,key:[256:1,512:2,>:4]"; spaces do not count. */
#include "analyzer/fit/settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

#define MIB (1ull << 20)

const struct sl_fit_settings sl_fit_defaults = {.max_split = UINT64_MAX, .non_split_rounding = 20 * MIB, .large_segment = 20 * MIB};

/* Reads one token: a punctuation mark, or the text between two. */
struct reader {
	const char *at, *token;
	size_t length;
};

static bool next(struct reader *reader)
{
	while (isspace((unsigned char)*reader->at))
		reader->at++;
	reader->token = reader->at;
	reader->length = *reader->at && strchr(",:[]", *reader->at) ? 1 : strcspn(reader->at, ",:[] \t\r\n");
	reader->at += reader->length;
	return reader->length != 0;
}

static bool is(const struct reader *reader, const char *text)
{
	return reader->length == strlen(text) && !memcmp(reader->token, text, reader->length);
}

static bool number(const struct reader *reader, double *value)
{
	char *end;

	*value = strtod(reader->token, &end);
	return reader->length && isdigit((unsigned char)*reader->token) && end == reader->token + reader->length;
}

static const char *read_mib(struct reader *reader, uint64_t *bytes)
{
	double value;

	if (!number(reader, &value) || value > 1e9 || value != (double)(uint64_t)value)
		return "a number of MiB is wanted";
	*bytes = (uint64_t)value * MIB;
	return NULL;
}

static const char *read_bool(struct reader *reader, bool *to)
{
	if (!is(reader, "True") && !is(reader, "False"))
		return "True or False is wanted";
	*to = is(reader, "True");
	return NULL;
}

static const char *read_fraction(struct reader *reader, double *to)
{
	if (!number(reader, to) || *to <= 0 || *to > 1)
		return "a number above 0 and up to 1 is wanted";
	return NULL;
}

static const char *read_power(struct reader *reader, uint64_t *to)
{
	double value;

	if (!number(reader, &value) || value > 1e9 || value != (double)(uint64_t)value || ((uint64_t)value & ((uint64_t)value - 1)))
		return "a power of two is wanted";
	*to = (uint64_t)value;
	return NULL;
}

/* ">" means every interval after the last one named; up to 2.9 that one too, which thus loses its own value. */
static const char *read_divisions(struct reader *reader, uint64_t divisions[SL_FIT_INTERVALS], unsigned release)
{
	uint64_t size, value;
	unsigned index = 0, from;
	bool first = true, rest;
	const char *wrong;

	if (!is(reader, "[")) {
		if ((wrong = read_power(reader, &value)))
			return wrong;
		for (unsigned i = 0; i < SL_FIT_INTERVALS; i++)
			divisions[i] = value;
		return NULL;
	}
	while (next(reader) && !is(reader, "]")) {
		rest = is(reader, ">");
		if (!rest && ((wrong = read_power(reader, &size)) || !size))
			return "a power of two is wanted";
		if (!next(reader) || !is(reader, ":") || !next(reader))
			return "size:divisions is wanted";
		if ((wrong = read_power(reader, &value)))
			return wrong;
		if (!rest)
			index = (unsigned)__builtin_ctzll(size) < SL_FIT_INTERVALS ? (unsigned)__builtin_ctzll(size)
										   : SL_FIT_INTERVALS - 1;
		from = first && !rest ? 0 : index + (rest && !first && release >= SL_FIT_RELEASE(2, 10));
		for (unsigned i = from; i < (rest ? SL_FIT_INTERVALS : index + 1); i++)
			divisions[i] = value;
		first = first && rest;
		if (!next(reader) || (!is(reader, ",") && !is(reader, "]")))
			return "a comma or ] is wanted";
		if (is(reader, "]"))
			break;
	}
	return is(reader, "]") ? NULL : "] is wanted";
}

static const char *read_backend(struct reader *reader, enum sl_fit_backend *to)
{
	*to = is(reader, "native") ? SL_FIT_NATIVE : is(reader, "cudaMallocAsync") ? SL_FIT_ASYNC : SL_FIT_CUSTOM;
	return *to == SL_FIT_CUSTOM ? "native or cudaMallocAsync is wanted" : NULL;
}

static const char *read_value(struct sl_fit_settings *settings, const struct reader *key, struct reader *reader, unsigned release)
{
	static const char *const without_effect[] = {
		"release_lock_on_cudamalloc",	  "release_lock_on_hipmalloc",	      "pinned_use_cuda_host_register",
		"pinned_use_hip_host_register",	  "pinned_num_register_threads",      "pinned_use_background_threads",
		"pinned_reserve_segment_size_mb", "pinned_max_round_threshold_mb",    "pinned_max_cached_size_mb",
		"pinned_free_catch_all",	  "graph_capture_record_stream_reuse"};

	if (is(key, "max_split_size_mb"))
		return read_mib(reader, &settings->max_split);
	if (is(key, "max_non_split_rounding_mb"))
		return read_mib(reader, &settings->non_split_rounding);
	if (is(key, "large_segment_size_mb")) { /* the other follows it unless it is given too */
		bool follows = settings->non_split_rounding == settings->large_segment;
		const char *wrong = read_mib(reader, &settings->large_segment);

		if (follows)
			settings->non_split_rounding = settings->large_segment;
		return wrong;
	}
	if (is(key, "garbage_collection_threshold"))
		return read_fraction(reader, &settings->gc_threshold);
	if (is(key, "per_process_memory_fraction"))
		return read_fraction(reader, &settings->fraction);
	if (is(key, "roundup_power2_divisions"))
		return read_divisions(reader, settings->divisions, release);
	if (is(key, "expandable_segments"))
		return read_bool(reader, &settings->expandable);
	if (is(key, "backend"))
		return read_backend(reader, &settings->backend);
	if (is(key, "throw_on_cudamalloc_oom"))
		return read_bool(reader, &settings->throws);
	for (size_t i = 0; i < SL_COUNT(without_effect); i++)
		if (is(key, without_effect[i]))
			return NULL;
	return "PyTorch has no such setting";
}

void sl_fit_settings_reset(struct sl_fit_settings *settings, unsigned release)
{
	settings->max_split = sl_fit_defaults.max_split;
	if (release >= SL_FIT_RELEASE(2, 11))
		settings->non_split_rounding = settings->large_segment;
	settings->gc_threshold = sl_fit_defaults.gc_threshold;
	memcpy(settings->divisions, sl_fit_defaults.divisions, sizeof(settings->divisions));
}

const char *sl_fit_settings_parse(struct sl_fit_settings *settings, const char *text, unsigned release, const char **at)
{
	struct reader reader = {.at = text}, key;
	const char *wrong = NULL;

	*at = text;
	while (!wrong && next(&reader)) {
		key = reader;
		*at = key.token;
		if (is(&reader, ","))
			continue;
		if (!next(&reader) || !is(&reader, ":") || !next(&reader))
			wrong = "key:value is wanted";
		else if (!(wrong = read_value(settings, &key, &reader, release)) && next(&reader) && !is(&reader, ","))
			wrong = "a comma is wanted";
	}
	if (!wrong && settings->large_segment <= 10 * MIB)
		return "large_segment_size_mb must be more than 10";
	if (!wrong && settings->max_split < settings->large_segment) /* up to 2.10 they must not be equal either */
		return "max_split_size_mb is below a segment's size, which is 20 unless large_segment_size_mb says otherwise";
	return wrong;
}
