/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <stdio.h>

#include "common/tracefile.h"
#include "common/now.h"

#define ENVIRONMENT_MAX (1u << 20) /* bytes */

size_t sl_header_read_of(long pid, const char *name, char *buffer, size_t size)
{
	char path[64];
	long used;

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
	used = sl_procfile_read(path, buffer, size);
	return used > 0 ? (size_t)used : 0;
}

static void key_link(struct sl_definition *out, const char *name, long pid)
{
	char path[64], link[4096];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
	length = readlink(path, link, sizeof(link) - 1);
	link[length > 0 ? length : 0] = 0;
	sl_definition_maybe_text(out, name, link);
}

/* The agent's rules read variables with getenv.  Here they are asked with the process's environment in place of ours. */
static long pack_run(struct sl_definition *out, long pid, const char *host, const char *boot_id)
{
	char *text = sl_attach_must(malloc(ENVIRONMENT_MAX)), **own = environ, **theirs, run[160], job[128];
	size_t bytes, count = 0;
	struct sl_identity_rank rank;

	bytes = sl_header_read_of(pid, "environ", text, ENVIRONMENT_MAX);
	theirs = sl_attach_must(calloc(bytes / 2 + 2, sizeof(*theirs)));
	for (char *at = text; at < text + bytes; at += strlen(at) + 1)
		if (*at)
			theirs[count++] = at;
	environ = theirs;
	rank = sl_identity_rank();
	sl_identity_job(job, sizeof(job));
	if (!sl_identity_run_named(run, sizeof(run)))
		sl_identity_run_fallback(run, sizeof(run), host, boot_id, (int)pid);
	sl_definition_maybe_int(out, "restart", sl_identity_restart());
	environ = own;
	sl_definition_maybe_text(out, "run_id", run);
	sl_definition_maybe_text(out, "job_id", job);
	sl_definition_maybe_int(out, "rank", rank.rank);
	sl_definition_maybe_int(out, "local_rank", rank.local_rank);
	sl_definition_maybe_int(out, "world_size", rank.world_size);
	free(theirs);
	free(text);
	return rank.rank;
}

size_t sl_header_of(long pid, uint8_t *bytes, size_t size, long *rank)
{
	struct sl_definition out = sl_definition_begin(bytes, size, "header");
	char boot_id[40], host[256] = "", path[64];

	sl_procfile_read("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	boot_id[strcspn(boot_id, "\n")] = 0;
	gethostname(host, sizeof(host) - 1);
	sl_definition_maybe_text(&out, "format", SL_TRACE_FORMAT);
	sl_definition_uint(&out, "version", SL_TRACE_VERSION);
	sl_definition_maybe_text(&out, "agent", SL_VERSION);
	sl_definition_uint(&out, "started_ns", sl_now_ns(CLOCK_REALTIME));
	sl_definition_uint(&out, "monotonic_ns", sl_now_ns(CLOCK_MONOTONIC));
	sl_definition_maybe_text(&out, "host", host);
	sl_definition_uint(&out, "pid", (uint64_t)pid);
	sl_definition_uint(&out, "ppid", sl_procfile_parent((uint64_t)pid));
	sl_definition_uint(&out, "process_start", sl_procfile_start((uint64_t)pid));
	sl_definition_maybe_text(&out, "boot_id", boot_id);
	*rank = pack_run(&out, pid, host, boot_id);
	snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
	sl_redact_pack(&out, path);
	key_link(&out, "exe", pid);
	key_link(&out, "cwd", pid);
	sl_definition_uint(&out, "watcher",
			   (uint64_t)getpid()); /* while this process lives the file grows; there is no ring that would say so */
	sl_definition_uint(&out, "watcher_start", sl_procfile_start((uint64_t)getpid()));
	sl_definition_uint(&out, "file", 1);
	sl_definition_key(&out, "system");
	sl_system_pack(&out.pack);
	sl_tables_pack(&out);
	return sl_definition_end(&out) ? out.pack.used : 0;
}
