/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <sys/utsname.h>

#define PARTS_MAX 1000000 /* a larger number is an error */

bool sl_shard_parse(struct sl_shard *shard, const char *text)
{
	const char *slash = strchr(text, '/');
	char part[16];
	long number, count;

	if (!slash || slash - text >= (long)sizeof(part))
		return false;
	snprintf(part, sizeof(part), "%.*s", (int)(slash - text), text);
	if (!sl_arguments_number(slash + 1, 1, PARTS_MAX, &count) || !sl_arguments_number(part, 1, count, &number))
		return false;
	*shard = (struct sl_shard){.part = (unsigned)number, .parts = (unsigned)count};
	return true;
}

static long integer(const char *name)
{
	const char *text = name ? getenv(name) : NULL;
	long number;

	return text && sl_arguments_number(text, 0, PARTS_MAX, &number) ? number : -1;
}

/*
 * The order matters.  mpirun under Slurm starts helpers with srun, and the ranks inherit srun's variables.  SLURM_NTASKS is set
 * in a batch script too, where only one process runs; the step's count is set only by srun.  PMIx gives no size.
 */
static const struct {
	const char *rank, *size;
} launchers[] = {
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"PMI_RANK", "PMI_SIZE"},
	{"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
	{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
	{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
	{"PMIX_RANK", NULL},
};

static bool take_rank(struct sl_shard *shard)
{
	const char *alone = NULL;

	*shard = (struct sl_shard){.part = 1, .parts = 1};
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		long rank = integer(launchers[i].rank), size = integer(launchers[i].size);

		if (rank >= 0 && size > rank) {
			*shard = (struct sl_shard){(unsigned)rank + 1, (unsigned)size, launchers[i].rank};
			return true;
		}
		if (rank >= 0 && !launchers[i].size)
			alone = launchers[i].rank;
	}
	shard->by = alone;
	return !alone;
}

/* An array with a step has the parts of all its indexes.  Indexes without a regular step (1,3,7) give no number. */
static bool take_array(struct sl_shard *shard)
{
	long id = integer("SLURM_ARRAY_TASK_ID"), count = integer("SLURM_ARRAY_TASK_COUNT"),
	     min_id = integer("SLURM_ARRAY_TASK_MIN"), max_id = integer("SLURM_ARRAY_TASK_MAX"),
	     step = integer("SLURM_ARRAY_TASK_STEP");

	if (id < 0)
		return true;
	if (step < 1)
		step = count > 1 ? (max_id - min_id) / (count - 1) : 1;
	if (!shard->by)
		shard->by = "SLURM_ARRAY_TASK_ID";
	if (count < 1 || min_id < 0 || step < 1 || min_id + step * (count - 1) != max_id || id < min_id || id > max_id ||
	    (id - min_id) % step || count * shard->parts > PARTS_MAX) {
		shard->by = "SLURM_ARRAY_TASK_ID";
		return false;
	}
	shard->part += (unsigned)((id - min_id) / step) * shard->parts;
	shard->parts *= (unsigned)count;
	return true;
}

bool sl_shard_from_environment(struct sl_shard *shard)
{
	return take_rank(shard) && take_array(shard);
}

bool sl_shard_is_asked(const char *pattern)
{
	const char *at = pattern;

	while ((at = strchr(at, '%')) && at[1]) {
		if (at[1] == 's')
			return true;
		at += 2;
	}
	return false;
}

bool sl_shard_name(const struct sl_shard *shard, const char *pattern, char *out, size_t size)
{
	struct utsname host;
	size_t at = 0;

	if (uname(&host))
		return false;
	for (; *pattern && at < size; pattern++) {
		if (*pattern != '%' || *++pattern == '%')
			at += (size_t)snprintf(out + at, size - at, "%c", *pattern);
		else if (*pattern == 's')
			at += (size_t)snprintf(out + at, size - at, "%u", shard->part);
		else if (*pattern == 'h')
			at += (size_t)snprintf(out + at, size - at, "%s", host.nodename);
		else
			return false;
	}
	return at < size;
}
