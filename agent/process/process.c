/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <fcntl.h>
#include <sys/utsname.h>

#include "common/text.h"
#include "common/now.h"

#define LOOKS	8
#define LOOK_NS 2000 /* a look at both clocks that took longer was interrupted */

/* A name as one component of a path: a job id may hold anything. */
static void add_component(struct sl_text *text, const char *name)
{
	size_t from = text->used;

	sl_text_add(text, name);
	for (; from < text->used; from++)
		if (text->text[from] == '/')
			text->text[from] = '_';
}

/* DIR with %h %r %p %j replaced, against the current directory when it is relative. */
static void find_directory(struct sl_process_identity *process, const char *template, const char *host)
{
	struct sl_text text = sl_text_begin(process->directory, sizeof(process->directory));
	char cwd[2048];

	if (*template != '/' && syscall(SYS_getcwd, cwd, sizeof(cwd)) > 0) {
		sl_text_add(&text, cwd);
		sl_text_add(&text, "/");
	}
	for (; *template; template ++) {
		if (*template != '%') {
			sl_text_add_bytes(&text, template, 1);
			continue;
		}
		switch (*++template) {
		case 'h':
			add_component(&text, host);
			break;
		case 'r':
			sl_text_add_number(&text, process->rank < 0 ? 0 : (uint64_t)process->rank);
			break;
		case 'p':
			sl_text_add_number(&text, process->pid);
			break;
		case 'j':
			add_component(&text, *process->job_id ? process->job_id : "none");
			break;
		case '%':
			sl_text_add(&text, "%");
			break;
		default: /* another character: copied */
			sl_text_add_bytes(&text, template - 1, *template ? 2 : 1);
			template -= !*template;
		}
	}
}

/* Both clocks at one instant: of some readings the one that was interrupted least. */
static void read_clocks(struct sl_process_identity *process)
{
	uint64_t least_ns = UINT64_MAX;

	for (unsigned i = 0; i < LOOKS && least_ns > LOOK_NS; i++) {
		uint64_t begin_ns = sl_now_kernel_ns(CLOCK_MONOTONIC), unix_ns = sl_now_kernel_ns(CLOCK_REALTIME);
		uint64_t took_ns = sl_now_kernel_ns(CLOCK_MONOTONIC) - begin_ns;

		if (took_ns < least_ns) {
			least_ns = took_ns;
			process->monotonic_ns = begin_ns + took_ns / 2;
			process->started_ns = unix_ns;
		}
	}
}

void sl_process_identify(struct sl_process_identity *process, const struct sl_options *options)
{
	struct sl_identity_rank rank = sl_identity_rank();
	int saved = errno;
	struct utsname system;

	memset(process, 0, sizeof(*process));
	process->rank = rank.rank;
	process->local_rank = rank.local_rank;
	process->world_size = rank.world_size;
	process->pid = (uint64_t)syscall(SYS_getpid);
	process->process_start = sl_procfile_start(0);
	sl_procfile_read("/proc/sys/kernel/random/boot_id", process->boot_id, sizeof(process->boot_id));
	process->boot_id[strcspn(process->boot_id, "\n")] = 0;
	read_clocks(process);
	if (uname(&system) < 0)
		strcpy(system.nodename, "localhost");
	sl_identity_job(process->job_id, sizeof(process->job_id));
	sl_identity_hip_devices(process->hip_devices, sizeof(process->hip_devices));
	if (!sl_identity_run_named(process->run_id, sizeof(process->run_id)))
		sl_identity_run_fallback(process->run_id, sizeof(process->run_id), system.nodename, process->boot_id, 0);
	find_directory(process, options->output ? options->output : ".", system.nodename);
	errno = saved;
}

bool sl_process_wanted(const struct sl_process_identity *process, const struct sl_options *options)
{
	static char command[4096]; /* static, because the stack of the one thread that attaches may be small */

	if (options->disable)
		return false;
	/* a process without a rank is its job's only one and counts as rank 0 */
	if (options->ranks && !sl_ranks_has(options->ranks, process->rank < 0 ? 0 : (unsigned)process->rank, NULL))
		return false;
	if (!options->only)
		return true;
	/* The first string of the command line. */
	return sl_procfile_read("/proc/self/cmdline", command, sizeof(command)) >= 0 && sl_filter_matches(options->only, command);
}

int sl_process_make_directory(const struct sl_process_identity *process)
{
	char path[sizeof(process->directory)];
	int saved = errno, error = 0;

	memcpy(path, process->directory, sizeof(path));
	for (char *at = path + (*path == '/');; at++) {
		char end = *at;

		if (end && end != '/')
			continue;
		*at = 0;
		error = *path && syscall(SYS_mkdirat, AT_FDCWD, path, 0700) < 0 ? errno : 0;
		*at = end;
		if (!end)
			break;
	}
	/* A directory that exists refuses mkdir with EEXIST, EROFS or EACCES; a file with the first too. */
	if (error) {
		long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0) {
			syscall(SYS_close, fd);
			error = 0;
		} else if (error == EEXIST)
			error = errno;
	}
	errno = saved;
	return error;
}
