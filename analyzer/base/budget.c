/* SPDX-License-Identifier: MIT */
#include "analyzer/base/budget.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "common/now.h"

#define SECONDS	      60.0
#define FILES	      1000000
#define KEPT	      256.0 /* MB, plus KEPT_EACH for each MB on disk */
#define KEPT_EACH     32.0
#define WRITTEN	      16.0 /* MB, plus WRITTEN_EACH for each MB on disk */
#define WRITTEN_EACH  128.0
#define EXPORTED_EACH 1024.0 /* an honest event takes one or two bytes in a trace and 310 as a line of JSON */
#define BLOCK_SIZE    512    /* unit of st_blocks on every file system */

static _Thread_local uint64_t charged_ns; /* this thread's processor time up to here has been charged */

static double setting(const char *name, double usual)
{
	const char *text = getenv(name);
	char *end;
	double value = text ? strtod(text, &end) : usual;

	return text && (end == text || *end || !(value >= 0)) ? usual : value < 1e9 ? value : 1e9;
}

uint64_t sl_budget_size(int fd)
{
	struct stat st;
	uint64_t stored, size;
	off_t at, hole;

	if (fstat(fd, &st))
		return 0;
	stored = (uint64_t)st.st_blocks * BLOCK_SIZE;
	size = (uint64_t)st.st_size;
	if (stored >= size)
		return size;
	at = lseek(fd, 0, SEEK_CUR); /* blocks count where it has a hole: some file systems know of none, or not yet */
	hole = lseek(fd, 0, SEEK_HOLE);
	lseek(fd, at, SEEK_SET);
	return (uint64_t)hole < size || hole < 0 ? stored : size;
}

void sl_budget_begin(struct sl_budget *budget, uint64_t bytes)
{
	double seconds = setting("STORMLOG_READ_SECONDS", SECONDS + (double)bytes / 1e6);

	*budget = (struct sl_budget){.left_ns = (uint64_t)(seconds * 1e9)};
}

void sl_budget_resume(void)
{
	charged_ns = sl_now_ns(CLOCK_THREAD_CPUTIME_ID);
}

bool sl_budget_spent(struct sl_budget *budget)
{
	uint64_t before = charged_ns, spent;

	sl_budget_resume();
	spent = charged_ns - before;
	budget->left_ns -= spent < budget->left_ns ? spent : budget->left_ns;
	return !budget->left_ns;
}

uint64_t sl_budget_files(void)
{
	return (uint64_t)setting("STORMLOG_READ_FILES", FILES);
}

uint64_t sl_budget_kept(uint64_t bytes_on_disk)
{
	return (uint64_t)(setting("STORMLOG_READ_MEGABYTES", KEPT + KEPT_EACH * (double)bytes_on_disk / 1e6) * 1e6);
}

static uint64_t written(uint64_t bytes_on_disk, double each)
{
	return (uint64_t)(setting("STORMLOG_WRITE_MEGABYTES", WRITTEN + each * (double)bytes_on_disk / 1e6) * 1e6);
}

uint64_t sl_budget_written(uint64_t bytes_on_disk)
{
	return written(bytes_on_disk, WRITTEN_EACH);
}

uint64_t sl_budget_exported(uint64_t bytes_on_disk)
{
	return written(bytes_on_disk, EXPORTED_EACH);
}
