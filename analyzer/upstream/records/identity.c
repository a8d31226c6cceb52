/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/identity.h"

#include <string.h>

#include "analyzer/base/utf8.h"

const char *const sl_identity_names[SL_IDENTITY_FIELDS] = {"job_id", "rank", "local_rank", "world_size"};

static const char *const number_reasons[] = {NULL, "rank must be an integer", "local_rank must be an integer",
					     "world_size must be an integer"};

/* int(text) of Python: white space around, a sign, single underscores between digits. */
static bool to_integer(const char *text, __int128 *out)
{
	struct sl_arena arena = {0};
	const char *at = sl_utf8_strip(&arena, text);
	bool negative = *at == '-', ok = false;
	__int128 sum = 0;

	if (*at == '-' || *at == '+')
		at++;
	for (; *at >= '0' && *at <= '9' && sum < (__int128)1 << 100; at++) {
		sum = sum * 10 + (*at - '0');
		ok = true;
		if (at[1] == '_' && at[2] >= '0' && at[2] <= '9')
			at++;
	}
	ok = ok && *at == 0;
	sl_arena_free(&arena);
	*out = negative ? -sum : sum;
	return ok;
}

static void job_from_env(struct sl_arena *arena, sl_identity_env *env, void *context, struct sl_value *job)
{
	static const char *const names[] = {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"};

	for (size_t i = 0; i < 2 && job->kind == SL_VALUE_NULL; i++) {
		const char *text = env(context, names[i]);

		if (text && !sl_utf8_is_blank(text))
			*job = (struct sl_value){.kind = SL_VALUE_STRING, .text = sl_utf8_strip(arena, text)};
	}
}

static bool numbers_from_env(sl_identity_env *env, void *context, struct sl_value *values, const char **reason)
{
	static const char *const groups[][3] = {
		{"RANK", "LOCAL_RANK", "WORLD_SIZE"},
		{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
		{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
	};

	for (size_t g = 0; g < 3; g++) {
		const char *text[3];

		for (size_t i = 0; i < 3; i++)
			text[i] = env(context, groups[g][i]);
		if (!text[0] || !text[2])
			continue;
		if (!text[1] || sl_utf8_is_blank(text[1]))
			text[1] = text[0];
		for (size_t i = 0; i < 3; i++) {
			__int128 number;

			if (!to_integer(text[i], &number)) {
				*reason = number_reasons[i + 1];
				return false;
			}
			if (number < (i == 2 ? 1 : 0)) {
				*reason = i == 2 ? "world_size must be >= 1" : "rank must be >= 0";
				return false;
			}
			if (values[i + 1].kind == SL_VALUE_NULL)
				values[i + 1] = sl_value_of_int(number);
		}
		return true;
	}
	return true;
}

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

bool sl_identity_resolve(struct sl_arena *arena, const struct sl_value *explicit_values, const struct sl_value *metadata,
			 sl_identity_env *env, void *context, struct sl_value values[SL_IDENTITY_FIELDS], const char **reason)
{
	bool missing = false;

	for (int i = 0; i < SL_IDENTITY_FIELDS; i++) {
		const struct sl_value *value = sl_value_get(explicit_values, sl_identity_names[i]);

		if (!value || value->kind == SL_VALUE_NULL)
			value = sl_value_get(metadata, sl_identity_names[i]);
		values[i] = value ? *value : (struct sl_value){.kind = SL_VALUE_NULL};
		missing = missing || (i != SL_IDENTITY_JOB && values[i].kind == SL_VALUE_NULL);
	}
	if (env && missing && !numbers_from_env(env, context, values, reason))
		return false;
	if (env)
		job_from_env(arena, env, context, &values[SL_IDENTITY_JOB]);
	if (values[SL_IDENTITY_WORLD].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_WORLD] = sl_value_of_int(1);
	if (values[SL_IDENTITY_RANK].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_RANK] = sl_value_of_int(0);
	if (values[SL_IDENTITY_LOCAL].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_LOCAL] = values[SL_IDENTITY_RANK];
	return check(values, reason);
}
