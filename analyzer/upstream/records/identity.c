/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/records.h"

const char *const sl_identity_names[SL_IDENTITY_FIELDS] = {"job_id", "rank", "local_rank", "world_size"};

static const char *const number_reasons[] = {NULL, "rank must be an integer", "local_rank must be an integer",
					     "world_size must be an integer"};

static bool check(struct sl_value *values, const char **reason)
{
	static const char *const negative[] = {NULL, "rank must be >= 0", "local_rank must be >= 0", "world_size must be >= 1"};
	struct sl_value *job = &values[SL_IDENTITY_JOB];
	__int128 world;

	*reason = job->kind != SL_VALUE_NULL && job->kind != SL_VALUE_STRING	? "job_id must be a string"
		  : job->kind == SL_VALUE_STRING && sl_utf8_is_blank(job->text) ? "job_id must be a non-empty string"
										: NULL;
	for (int i = SL_IDENTITY_RANK; i < SL_IDENTITY_FIELDS && !*reason; i++)
		if (values[i].kind != SL_VALUE_INT)
			*reason = number_reasons[i];
		else if (values[i].integer < (i == SL_IDENTITY_WORLD))
			*reason = negative[i];
	if (*reason)
		return false;
	world = values[SL_IDENTITY_WORLD].integer;
	if (values[SL_IDENTITY_RANK].integer >= world)
		*reason = "rank must be < world_size";
	else if (values[SL_IDENTITY_LOCAL].integer >= world)
		*reason = "local_rank must be < world_size";
	return !*reason;
}

bool sl_identity_resolve(const struct sl_value *explicit_values, const struct sl_value *metadata,
			 struct sl_value values[SL_IDENTITY_FIELDS], const char **reason)
{
	for (int i = 0; i < SL_IDENTITY_FIELDS; i++) {
		const struct sl_value *value = sl_value_get(explicit_values, sl_identity_names[i]);

		if (!value || value->kind == SL_VALUE_NULL)
			value = sl_value_get(metadata, sl_identity_names[i]);
		values[i] = value ? *value : (struct sl_value){.kind = SL_VALUE_NULL};
	}
	if (values[SL_IDENTITY_WORLD].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_WORLD] = sl_value_of_int(1);
	if (values[SL_IDENTITY_RANK].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_RANK] = sl_value_of_int(0);
	if (values[SL_IDENTITY_LOCAL].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_LOCAL] = values[SL_IDENTITY_RANK];
	return check(values, reason);
}
