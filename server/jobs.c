/* SPDX-License-Identifier: MIT */
#include "server/server.h"

#include <inttypes.h>

enum { KEY_MAX = sizeof(struct sl_job) + 40 };

static void key_of(const struct sl_job *job, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "%s %s %" PRIx64 " %" PRIx64, job->pack, job->after, job->from_ns, job->to_ns);
}

void sl_jobs_put(struct sl_jobs *jobs, const struct sl_job *job)
{
	char key[KEY_MAX];

	key_of(job, key);
	*sl_map_at(&jobs->waiting, key) = 1;
	*SL_PUSH(&jobs->list) = *job;
}

bool sl_jobs_has(const struct sl_jobs *jobs, const struct sl_job *job)
{
	char key[KEY_MAX];

	key_of(job, key);
	return sl_map_find(&jobs->waiting, key);
}

size_t sl_jobs_count(const struct sl_jobs *jobs)
{
	return jobs->list.count - jobs->taken;
}

/* Makes the queue anew, so that it needs no more memory than what waits. */
static void forget_taken(struct sl_jobs *jobs)
{
	struct sl_jobs left = {0};

	for (size_t i = jobs->taken; i < jobs->list.count; i++)
		sl_jobs_put(&left, &jobs->list.item[i]);
	sl_jobs_free(jobs);
	*jobs = left;
}

struct sl_job sl_jobs_take(struct sl_jobs *jobs)
{
	struct sl_job job = jobs->list.item[jobs->taken++];
	char key[KEY_MAX];

	key_of(&job, key);
	*sl_map_at(&jobs->waiting, key) = 0;
	if (jobs->taken * 2 >= jobs->list.count) /* so late that each job is put again once, on average */
		forget_taken(jobs);
	return job;
}

void sl_jobs_free(struct sl_jobs *jobs)
{
	SL_DROP(&jobs->list);
	sl_map_free(&jobs->waiting);
	jobs->taken = 0;
}
