/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "common/tracefile.h"

#define VALUE_MAX  4096	       /* most bytes of a variable's value */
#define VALUES_MAX (64u << 10) /* most bytes of all values; the header has room for 192 KiB */

/* pids in each namespace that /proc shows, outermost first; kernels before 4.1 do not say. */
static void pack_pids(struct sl_definition *out, const struct sl_process_identity *process)
{
	char line[360], *at = line;
	uint64_t pids[32] = {process->pid}, count = 0;

	sl_procfile_find("/proc/self/status", "NSpid:", line, sizeof(line));
	while (count < SL_COUNT(pids) && sl_procfile_digits(at, &pids[count])) {
		count++;
		at += strspn(at, "0123456789");
		at += strspn(at, " \t");
	}
	count += !count;
	sl_definition_key(out, "pids");
	sl_pack_array(&out->pack, count);
	for (unsigned i = 0; i < count; i++)
		sl_pack_uint(&out->pack, pids[i]);
}

static void pack_paths(struct sl_definition *out)
{
	static char path[4096]; /* too large for the stack of a small thread */
	long size = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof(path) - 1);

	path[size > 0 ? size : 0] = 0;
	sl_definition_maybe_text(out, "exe", path);
	if (syscall(SYS_getcwd, path, sizeof(path)) <= 0)
		*path = 0;
	sl_definition_maybe_text(out, "cwd", path);
}

/* KEY=VALUE lines; one without = is a key whose value is empty. */
static void pack_lines(struct sl_definition *out, const char *key, const char *lines)
{
	unsigned count = 0;

	for (const char *at = lines; at && *at; at += strcspn(at, "\n"), at += *at == '\n')
		count += *at != '\n';
	sl_definition_key(out, key);
	sl_pack_map(&out->pack, count);
	while (count) {
		size_t line = strcspn(lines, "\n"), name = strcspn(lines, "=\n");

		if (line) {
			sl_pack_bytes(&out->pack, lines, name);
			name += name < line;
			sl_pack_bytes(&out->pack, lines + name, line - name);
			count--;
		}
		lines += line + 1;
	}
}

static void pack_settings(struct sl_definition *out, const struct sl_options *options)
{
	char scratch[24];

	sl_definition_key(out, "settings");
	sl_pack_map(&out->pack, sl_options_count);
	for (unsigned i = 0; i < sl_options_count; i++) {
		const char *value = sl_options_text(&sl_options_table[i], options, scratch);

		sl_pack_text(&out->pack, sl_options_table[i].name);
		sl_pack_text(&out->pack, value ? value : "");
	}
}

static bool is_listed(const char *entry, size_t length)
{
	static const char *const names[] = {
#define ENVIRONMENT(name) name,
#include "agent/process/options.def"
#undef ENVIRONMENT
	};

	for (size_t i = 0; i < SL_COUNT(names); i++) {
		size_t size = strlen(names[i]);
		bool prefix = names[i][size - 1] == '*';

		size -= prefix;
		if ((prefix ? length >= size : length == size) && !memcmp(entry, names[i], size))
			return true;
	}
	return false;
}

static void pack_environment(struct sl_definition *out)
{
	const char *variables[256];
	unsigned count = 0;
	size_t left = VALUES_MAX;

	for (char **at = __environ; at && *at && count < SL_COUNT(variables); at++)
		if (is_listed(*at, strcspn(*at, "=")))
			variables[count++] = *at;
	sl_definition_key(out, "environment");
	sl_pack_map(&out->pack, count);
	for (unsigned i = 0; i < count; i++) {
		size_t name = strcspn(variables[i], "=");

		const char *value = variables[i][name] ? variables[i] + name + 1 : "";
		size_t bytes = strnlen(value, left < VALUE_MAX ? left : VALUE_MAX);

		sl_pack_bytes(&out->pack, variables[i], name);
		sl_pack_bytes(&out->pack, value, bytes);
		left -= bytes;
	}
}

static void pack_identity(struct sl_definition *out, const struct sl_process_identity *process)
{
	struct utsname system;

	sl_definition_maybe_text(out, "format", SL_TRACE_FORMAT);
	sl_definition_uint(out, "version", SL_TRACE_VERSION);
	sl_definition_maybe_text(out, "agent", SL_VERSION);
	sl_definition_uint(out, "started_ns", process->started_ns);
	sl_definition_uint(out, "monotonic_ns", process->monotonic_ns);
	sl_definition_maybe_text(out, "host", uname(&system) < 0 ? "" : system.nodename);
	sl_definition_uint(out, "pid", process->pid);
	pack_pids(out, process);
	sl_definition_uint(out, "ppid", (uint64_t)syscall(SYS_getppid));
	sl_definition_uint(out, "process_start", process->process_start);
	sl_definition_maybe_text(out, "boot_id", process->boot_id);
	sl_definition_maybe_text(out, "run_id", process->run_id);
	sl_definition_maybe_text(out, "job_id", process->job_id);
	sl_definition_maybe_int(out, "rank", process->rank);
	sl_definition_maybe_int(out, "local_rank", process->local_rank);
	sl_definition_maybe_int(out, "world_size", process->world_size);
	sl_definition_maybe_int(out, "restart", sl_identity_restart());
}

size_t sl_process_header(void *buffer, size_t size, const struct sl_process_identity *process, const struct sl_options *options,
			 const char *ring, unsigned file)
{
	struct sl_definition out = sl_definition_begin(buffer, size, "header");
	int saved = errno;

	pack_identity(&out, process);
	sl_redact_pack(&out, "/proc/self/cmdline");
	pack_paths(&out);
	sl_definition_maybe_text(&out, "tag", options->tag);
	pack_lines(&out, "metadata", options->meta);
	if (getenv("STORMLOG_DRY_CARD"))
		pack_lines(&out, "dry", getenv("STORMLOG_DRY_CARD"));
	pack_settings(&out, options);
	pack_environment(&out);
	sl_definition_key(&out, "system");
	sl_system_pack(&out.pack);
	sl_definition_maybe_text(&out, "ring", ring);
	sl_definition_uint(&out, "file", file);
	sl_tables_pack(&out);
	errno = saved;
	return sl_definition_end(&out) ? out.pack.used : 0;
}
