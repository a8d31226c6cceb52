/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"
#include "common/text.h"

/* A variable's value, NULL when it is unset or blank. */
static const char *variable(const char *name)
{
	const char *value = name ? sl_options_variable(name) : NULL;

	return value && value[strspn(value, " \t\n")] ? value : NULL;
}

/* Reads a number as Python's int() does: blanks around, a sign.  -1: unset, no number, negative or too large. */
static int integer(const char *name)
{
	const char *at = variable(name);
	uint64_t number;

	if (!at)
		return -1;
	at += strspn(at, " \t\n");
	at += *at == '+';
	if (strspn(at, "0123456789") > 9 || !sl_procfile_digits(at, &number))
		return -1;
	at += strspn(at, "0123456789");
	at += strspn(at, " \t\n");
	return *at ? -1 : (int)number;
}

struct group {
	const char *rank, *local, *size;
	bool local_is_rank; /* a missing local rank is the rank, as upstream assumes */
};

/*
 * Order matters: torchrun under mpirun or srun sets several groups.  SLURM_NTASKS is set in a batch script too, which is one
 * process with SLURM_PROCID 0; the step's count is set only by srun.  PMIx gives no size: complete with the rank alone.
 */
static const struct group groups[] = {
	{"STORMLOG_RANK", "LOCAL_RANK", "STORMLOG_WORLD_SIZE", true}, /* set by the user */
	{"STORMLOG_RANK", "LOCAL_RANK", NULL, true},
	{"RANK", "LOCAL_RANK", "WORLD_SIZE", true},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", true},
	{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", true},
	{"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", false},
	{"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", false},
	{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE", false},
	{"PMIX_RANK", NULL, NULL, false},
};

struct sl_identity_rank sl_identity_rank(void)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		const struct group *group = &groups[i];
		struct sl_identity_rank is = {integer(group->rank), integer(group->local), integer(group->size), group->rank};

		if (is.rank < 0 || (group->size && is.world_size <= is.rank))
			continue;
		if (group->local_is_rank && !variable(group->local))
			is.local_rank = is.rank;
		return is;
	}
	return (struct sl_identity_rank){-1, -1, -1, NULL};
}

/* torchrun's run id, unless it is the default "none". */
static const char *torchrun(void)
{
	const char *id = variable("TORCHELASTIC_RUN_ID");

	return id && strcmp(id, "none") ? id : NULL;
}

void sl_identity_job(char *out, size_t size)
{
	static const char *const names[] = {"SLURM_JOB_ID", "FLUX_JOB_ID", "LSB_JOBID", "PBS_JOBID"};
	struct sl_text text = sl_text_begin(out, size);
	const char *id = variable("STORMLOG_JOB_ID");

	if (!id)
		id = torchrun();
	for (size_t i = 0; !id && i < sizeof(names) / sizeof(names[0]); i++)
		id = variable(names[i]);
	sl_text_add(&text, id ? id : "");
}

void sl_identity_hip_devices(char *out, size_t size)
{
	struct sl_text text = sl_text_begin(out, size);
	const char *list = variable("HIP_VISIBLE_DEVICES");

	if (!list)
		list = variable("CUDA_VISIBLE_DEVICES");
	sl_text_add(&text, list ? list : "");
}

int sl_identity_restart(void)
{
	int torch = integer("TORCHELASTIC_RESTART_COUNT");

	return torch >= 0 ? torch : integer("SLURM_RESTART_COUNT");
}

static void add_count(struct sl_text *text, const char *what, const char *name)
{
	int count = integer(name);

	if (count <= 0)
		return;
	sl_text_add(text, what);
	sl_text_add_number(text, (uint64_t)count);
}

static void add_two(struct sl_text *text, const char *what, const char *first, const char *second)
{
	sl_text_add(text, what);
	sl_text_add(text, first);
	if (second) {
		sl_text_add(text, ".");
		sl_text_add(text, second);
	}
}

bool sl_identity_run_named(char *out, size_t size)
{
	struct sl_text text = sl_text_begin(out, size);
	const char *id = variable("STORMLOG_RUN_ID");

	if (id) {
		sl_text_add(&text, id);
		return true;
	}
	if ((id = variable("STORMLOG_JOB_ID")))
		add_two(&text, "job-", id, NULL);
	else if ((id = variable("SLURM_JOB_ID")))
		add_two(&text, "slurm-", id, variable("SLURM_STEP_ID"));
	else if ((id = variable("FLUX_JOB_ID")))
		add_two(&text, "flux-", id, NULL);
	else if ((id = torchrun()))
		add_two(&text, "torchrun-", id, NULL);
	else if ((id = variable("PMIX_NAMESPACE")))
		add_two(&text, "pmix-", id, NULL);
	if (!id)
		return false;
	add_count(&text, "-restart", "SLURM_RESTART_COUNT");
	add_count(&text, "-attempt", "TORCHELASTIC_RESTART_COUNT");
	return true;
}

/* A variable that a launcher gave this process, and gives all processes that it starts; NULL: none did. */
static const char *launched(void)
{
	static const char *const names[] = {"TORCHELASTIC_RUN_ID", "RAY_JOB_ID"};
	struct sl_identity_rank rank = sl_identity_rank();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (variable(names[i]))
			return names[i];
	return rank.world_size == 1 ? NULL : rank.variable; /* a program says so of itself to use a library for many ranks */
}

/* The process that began the run of process `pid`: a parent that is recorded has its children in its run, a launcher its ranks. */
static uint64_t root_of(uint64_t pid)
{
	const char *mark = launched();
	uint64_t root = pid, at;

	for (at = sl_procfile_parent(pid); at; at = sl_procfile_parent(at))
		if (sl_procfile_holds(at, "/maps", SL_IDENTITY_LIBRARY))
			root = at;
	if (!mark || (root != pid && !sl_procfile_holds(root, "/environ", mark)))
		return root;
	for (at = sl_procfile_parent(root); at; at = sl_procfile_parent(at)) {
		root = at;
		if (!sl_procfile_holds(at, "/environ", mark))
			break;
	}
	return root;
}

void sl_identity_run_fallback(char *out, size_t size, const char *host, const char *boot_id, uint64_t pid)
{
	struct sl_text text = sl_text_begin(out, size);
	uint64_t root, namespace;

	/* the number as /proc counts, also in a pid namespace without a /proc of its own */
	if (!pid && !sl_procfile_number("/proc/self/stat", &pid))
		pid = (uint64_t)syscall(SYS_getpid);
	root = root_of(pid);
	namespace = sl_procfile_namespace(root);
	sl_text_add(&text, host);
	sl_text_add(&text, "-");
	sl_text_add_bytes(&text, boot_id, strnlen(boot_id, 8));
	if (namespace && namespace != SL_PROCFILE_HOST) {
		sl_text_add(&text, "-");
		sl_text_add_number(&text, namespace);
	}
	sl_text_add(&text, "-");
	sl_text_add_number(&text, root);
	sl_text_add(&text, "-");
	sl_text_add_number(&text, sl_procfile_start(root));
}

bool sl_identity_run_shared(void)
{
	char named[8];

	if (variable("STORMLOG_RUN_ID"))
		return true;
	/* A batch script has a job but no step, and may start several launchers one after the other. */
	if (variable("SLURM_JOB_ID") && !variable("STORMLOG_JOB_ID"))
		return variable("SLURM_STEP_ID") != NULL;
	return sl_identity_rank().rank >= 0 && sl_identity_run_named(named, sizeof(named));
}
