/* SPDX-License-Identifier: MIT */
#include "launcher/launcher.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/process/hostmem.h"
#include "agent/process/netfs.h"
#include "launcher/probe.h"

static bool as_json; /* on standard output, instead of lines for people */

/* Bytes of a path that are no UTF-8 become '?'. */
static void put_json(const char *text)
{
	putchar('"');
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		unsigned more = *at < 0x80 ? 0 : (*at & 0xe0) == 0xc0 ? 1 : (*at & 0xf0) == 0xe0 ? 2 : (*at & 0xf8) == 0xf0 ? 3 : 4;
		unsigned have = 0;

		while (have < more && (at[have + 1] & 0xc0) == 0x80)
			have++;
		if (have < more)
			putchar('?');
		else if (*at < 0x20)
			printf("\\u%04x", *at);
		else
			printf("%s%.*s", *at == '"' || *at == '\\' ? "\\" : "", (int)more + 1, (const char *)at);
		at += have;
	}
	putchar('"');
}

static void line(const char *what, const char *format, ...) SL_PRINTF(2, 3);

/* what: the subject; "": the same as in the line before. */
static void line(const char *what, const char *format, ...)
{
	static const char *about;
	char text[8192];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!as_json) {
		fprintf(stderr, "%-13s %s\n", what, text);
		return;
	}
	printf("%s{\"about\":\"%s\",\"text\":", about ? "," : "", *what ? what : about);
	put_json(text);
	putchar('}');
	about = *what ? what : about;
}

/* "1.5 GiB" */
static const char *size_text(uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	static char text[4][24];
	static unsigned next;
	double value = (double)bytes;
	unsigned unit = 0;
	char *out = text[next++ & 3];

	for (; value >= 1024 && unit + 1 < SL_COUNT(units); unit++)
		value /= 1024;
	snprintf(out, sizeof(text[0]), unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return out;
}

static bool check_agent(struct sl_launch *run, struct sl_probe_calls *calls)
{
	char found[sizeof(run->library)];
	const char *why;

	if (!sl_paths_library(run->library, sizeof(run->library))) {
		line("agent", "no libstormlog_preload.so beside stormlog-run or in ../lib: nothing can be recorded");
		return false;
	}
	*calls = sl_probe_calls(run->library);
	line("agent", "%s  %s, wraps %zu functions", run->library, SL_VERSION, calls->count);
	strcpy(found, run->library);
	why = sl_link_library(run->library, sizeof(run->library));
	if (why)
		line("", "%s", why);
	else if (strcmp(found, run->library))
		line("", "preloaded as %s, since LD_PRELOAD cannot hold a blank or a colon", run->library);
	return !why;
}

/* The first line that the interpreter prints; it runs without the agent. */
static bool ask_python(const char *python, const char *program, char *out, size_t size)
{
	char command[4600];
	FILE *pipe;
	bool got;

	if (strpbrk(python, "'\\"))
		return false;
	snprintf(command, sizeof(command), "'%s' -c '%s' 2>/dev/null", python, program);
	pipe = popen(command, "r");
	if (!pipe)
		return false;
	got = fgets(out, (int)size, pipe) != NULL;
	pclose(pipe);
	out[strcspn(out, "\n")] = 0;
	return got && *out;
}

static void check_python(const char *python)
{
	char version[64], torch[64];
	int minor;

	if (strncmp(basename(python), "python", 6))
		return;
	if (!ask_python(python, "import sys; print(sys.implementation.name, \"%d.%d.%d\" % sys.version_info[:3])", version,
			sizeof(version)))
		return;
	if (sscanf(version, "cpython 3.%d", &minor) == 1 && minor >= 9 && minor <= 15)
		line("Python", "%s, its stacks are recorded", version);
	else
		line("Python", "%s: no Python stacks (they are known for CPython 3.9 to 3.15)", version);
	if (ask_python(python, "from importlib.metadata import version; print(version(\"torch\"))", torch, sizeof(torch)))
		line("PyTorch", "%s", torch);
}

/* Programs built with a sanitizer call its start function; its presence among the symbols tells. */
static void check_sanitizer(const char *path)
{
	static const struct {
		const char *function, *says;
	} known[] = {{"__asan_init", "AddressSanitizer; without stormlog-run a program that sets options itself needs "
				     "ASAN_OPTIONS=verify_asan_link_order=0"},
		     {"__tsan_init", "ThreadSanitizer"},
		     {"__msan_init", "MemorySanitizer"}};
	size_t size;
	const char *file = sl_probe_map(path, &size);

	for (size_t i = 0; file && i < SL_COUNT(known); i++)
		if (memmem(file, size, known[i].function, strlen(known[i].function) + 1))
			line("sanitizer", "%s: native stacks by the agent's own walk, no samples of NVML", known[i].says);
}

static bool check_command(const struct sl_launch *run)
{
	char path[4096], interpreter[4096];
	const char *why, *starter, *says;
	int error;

	if (!run->command[0])
		return true;
	says = sl_starters_say(run->command, &starter);
	if (says)
		line("launcher", "%s: %s", starter, says);
	error = sl_paths_command(run->command[0], path, sizeof(path));
	if (error) {
		line("command", "%s: %s", run->command[0], error == ENOENT ? "not found" : "not executable");
		return false;
	}
	why = sl_target_hinders(path, interpreter, sizeof(interpreter));
	if (why) {
		line("command", "%s", why);
		return false;
	}
	if (strcmp(path, interpreter))
		line("command", "%s, a script for %s", path, interpreter);
	else
		line("command", "%s", path);
	check_sanitizer(interpreter);
	check_python(strncmp(basename(path), "python", 6) ? interpreter : path); /* pyenv's interpreters are scripts */
	return true;
}

static void check_library(enum sl_probe_which library, const struct sl_probe_calls *calls, char *absent, size_t size)
{
	const char *name = sl_probe_name(library);
	bool found = false;

	for (unsigned version = 0; version < sl_probe_versions(library); version++) {
		struct sl_probe_result probe;

		if (sl_probe_library(library, version, calls, &probe)) {
			char count[64] = "";

			if (probe.calls)
				snprintf(count, sizeof(count), "%s%u of its functions are wrapped", *probe.answer ? ", " : "",
					 probe.calls);
			line(name, "%s  %s%s", probe.path, probe.answer, count);
			found = true;
		} else if (*probe.answer) {
			line(name, "%s", probe.answer);
			found = true;
		}
	}
	if (!found)
		snprintf(absent + strlen(absent), size - strlen(absent), "%s%s", *absent ? ", " : "", name);
}

/* The nearest existing folder above one that is still to be made. */
static void existing(char *path)
{
	path[strcspn(path, "%")] = 0;
	while (strrchr(path, '/') > path && access(path, F_OK) < 0)
		*strrchr(path, '/') = 0;
	if (access(path, F_OK) < 0)
		strcpy(path, "/");
}

static bool check_folder(const struct sl_launch *run)
{
	char path[sizeof(run->directory)];
	struct statvfs space;
	const char *type, *why;

	strcpy(path, run->directory);
	existing(path);
	type = sl_netfs_name(path);
	if (access(path, W_OK | X_OK) < 0) {
		line("trace", "%s: %s: %s", run->directory, path, strerror(errno));
		return false;
	}
	if (statvfs(path, &space) < 0)
		memset(&space, 0, sizeof(space));
	line("trace", "%s  %s%s%s free", run->directory, type ? type : "", type ? ", " : "",
	     size_text(space.f_bavail * space.f_frsize));
	why = sl_netfs_why(path);
	if (!why) {
		line("ring", "beside the trace: safe when the process is killed");
		return true;
	}
	if (statvfs(SL_REMOTE_RING, &space) < 0 || access(SL_REMOTE_RING, W_OK) < 0)
		line("ring", "%s, and " SL_REMOTE_RING " cannot be written", why);
	else
		line("ring", SL_REMOTE_RING ", %s free: %s; after a kill run stormlog-analyze on the node",
		     size_text(space.f_bavail * space.f_frsize), why);
	return true;
}

static void check_limits(const struct sl_launch *run)
{
	struct sl_hostmem memory;
	struct rlimit limit;

	sl_hostmem_read(&sl_hostmem_self, &memory);
	if (memory.cgroup_limit_bytes != SL_HOSTMEM_UNKNOWN)
		line("limits", "this cgroup may use %s, %s in use", size_text(memory.cgroup_limit_bytes),
		     size_text(memory.cgroup_bytes));
	if (sl_hostmem_limit() != SL_HOSTMEM_UNKNOWN)
		line("limits", "address space of a process %s (ulimit -v): CUDA needs far more than it uses",
		     size_text(sl_hostmem_limit()));
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		line("limits", "files of at most %s (ulimit -f)%s", size_text(limit.rlim_cur),
		     run->options.keep && run->options.keep <= limit.rlim_cur ? "" : ": choose a smaller --keep");
	if (run->options.limit)
		line("limits", "each device pretends to have %s (--limit)", size_text(run->options.limit));
}

/* Other preloaded libraries.  One that comes before ours and hands out functions of its own gets the calls first. */
static void check_preloaded(const struct sl_launch *run)
{
	const char *before = getenv("LD_PRELOAD");

	if (before && *before && strcmp(before, run->library))
		line("LD_PRELOAD", "%s%s", before,
		     strstr(before, run->library) ? ": the agent keeps that place" : ": the agent goes before it");
	if (before && strstr(before, "libstormlog_preload") && !strstr(before, run->library))
		line("", "that is another copy of the agent: the first one records");
}

int sl_check_run(struct sl_launch *run)
{
	struct sl_probe_calls calls = {"", NULL, 0};
	char absent[256] = "";
	bool agent, command, folder;

	as_json = run->json;
	if (as_json)
		printf("{\"schema\":\"stormlog.run_check\",\"schema_version\":1,\"lines\":[");
	agent = check_agent(run, &calls);
	command = check_command(run);
	for (enum sl_probe_which library = 0; library < SL_PROBE_LIBRARIES; library++)
		check_library(library, &calls, absent, sizeof(absent));
	if (*absent)
		line("not here", "%s (a program may bring its own)", absent);
	if (strstr(absent, sl_probe_name(SL_PROBE_LIBUNWIND)))
		line("", "no native stacks without libunwind.so.8: install libunwind8 or libunwind");
	if (!access("/sys/class/kfd/kfd/proc", R_OK))
		line("amdgpu", "device memory, and each process's, from the kernel");
	line("not seen",
	     "calls of statically linked programs, of libraries opened with RTLD_DEEPBIND (PHP's FFI, Taichi) or dlmopen");
	if (agent)
		check_preloaded(run);
	folder = check_folder(run);
	check_limits(run);
	free(calls.names);
	if (as_json)
		printf("],\"records\":%s}\n", agent && command && folder ? "true" : "false");
	return agent && command && folder ? 0 : SL_LAUNCH_FAILED;
}
