/* SPDX-License-Identifier: MIT */
/* --check: says what would be recorded of a command, and why the rest would not. */
#include "agent/launcher/launcher.h"

#include <dlfcn.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <wchar.h>

#include "agent/process/process.h"

/* Programs that start programs elsewhere, and the command that records those (doc/launching.md says more). */

#define NODES "With several nodes, start stormlog-run on each, and give -o a folder that all nodes see."

static const struct starter {
	const char *name;   /* the program's name, or that of a Python module after -m */
	const char *action; /* the word that must follow, as accelerate launch, or an option of its own; NULL: any */
	const char *says;
} starters[] = {
	{"torchrun", NULL, "Each rank leaves a trace. " NODES},
	{"torch.distributed.run", NULL, "Each rank leaves a trace. " NODES},
	{"torch.distributed.launch", NULL, "Each rank leaves a trace. " NODES},
	{"accelerate", "launch", "Each rank leaves a trace; with one process no rank is named. " NODES},
	{"accelerate.commands.launch", NULL, "Each rank leaves a trace; with one process no rank is named. " NODES},
	{"deepspeed", NULL,
	 "Each rank of this node leaves a trace. Other nodes are reached by ssh, which hands on what .deepspeed_env has: "
	 "LD_PRELOAD, "
	 "STORMLOG_DIR."},
	{"ray", NULL,
	 "Workers of a running cluster do not inherit the environment: hand them LD_PRELOAD and STORMLOG_DIR by "
	 "runtime_env={\"env_vars\": ...}."},
	{"dask", NULL,
	 "This process and what it spawns leave traces; workers that others start do not: each by stormlog-run dask worker."},
	{"dask-worker", NULL, "The worker and what it spawns leave traces."},
	{"srun", "--container-image",
	 "Pyxis: the container is only recorded if both folders are mounted in it: srun "
	 "--container-image=IMAGE "
	 "--container-mounts=TRACES:/traces stormlog-run -o /traces PROGRAM, with the wheel in the image."},
	{"srun", NULL, "srun passes the environment on. If --export drops LD_PRELOAD, use srun stormlog-run PROGRAM."},
	{"sbatch", "--array",
	 "Each job of the array runs elsewhere and later: write stormlog-run -o traces/%j before the program, in the script, for a "
	 "folder a "
	 "job."},
	{"sbatch", NULL, "The job's script runs elsewhere and later: write stormlog-run before the program, in the script."},
	{"salloc", NULL, "Commands of its shell on this machine are recorded; on nodes: srun stormlog-run PROGRAM."},
	{"mpirun", NULL,
	 "OpenMPI hands LD_PRELOAD on to this node only: add -x LD_PRELOAD -x STORMLOG_DIR, or mpirun stormlog-run PROGRAM."},
	{"mpiexec", NULL, "Ranks of other nodes may not inherit LD_PRELOAD: mpiexec stormlog-run PROGRAM always records them."},
	{"jupyter", NULL, "Each notebook process writes a trace while it runs; stormlog_native.report() in a cell shows it."},
	{"jupyter-lab", NULL, "Each notebook process writes a trace while it runs; stormlog_native.report() in a cell shows it."},
	{"jupyter-notebook", NULL,
	 "Each notebook process writes a trace while it runs; stormlog_native.report() in a cell shows it."},
	{"docker", NULL,
	 "The container is not recorded from here: docker run ... -v $PWD/traces:/traces IMAGE stormlog-run -o /traces "
	 "PROGRAM."},
	{"podman", NULL,
	 "The container is not recorded from here: podman run ... -v $PWD/traces:/traces IMAGE stormlog-run -o /traces "
	 "PROGRAM."},
	{"apptainer", NULL,
	 "The container inherits LD_PRELOAD: bind the agent's folder and the traces' at their own paths (--bind), or "
	 "stormlog-run inside."},
	{"singularity", NULL,
	 "The container inherits LD_PRELOAD: bind the agent's folder and the traces' at their own paths (--bind), or "
	 "stormlog-run inside."},
	{"kubectl", NULL,
	 "The pod is not recorded from here: write stormlog-run -o /traces -- before the program, in the pod's command."},
	{"bwrap", NULL,
	 "The sandbox inherits LD_PRELOAD: bind the agent's folder and the traces', or bwrap ... stormlog-run PROGRAM."},
	{"code", NULL,
	 "A running editor does not inherit the environment: give LD_PRELOAD and STORMLOG_DIR in \"env\" of launch.json, or "
	 "write "
	 "stormlog-run before the program in its terminal."},
	{"systemd-run", NULL, "A service does not inherit the environment: systemd-run stormlog-run -o TRACES PROGRAM."},
	{"systemctl", NULL,
	 "A service does not inherit the environment: write stormlog-run -o /var/lib/NAME/traces -- before the program, in its "
	 "ExecStart."},
	{"ssh", NULL, "The other machine is not recorded from here: ssh HOST stormlog-run PROGRAM."},
	{"sudo", NULL, "sudo empties the environment: sudo stormlog-run PROGRAM."},
};

/* An option, with or without its value: --array=0-7. */
static bool has_option(char *const *argv, const char *option)
{
	size_t length = strlen(option);

	for (; *argv; argv++)
		if (!strncmp(*argv, option, length) && (!(*argv)[length] || (*argv)[length] == '='))
			return true;
	return false;
}

/* argv: the arguments after the name. */
static bool does(const struct starter *starter, char *const *argv)
{
	if (!starter->action)
		return true;
	if (starter->action[0] == '-')
		return has_option(argv, starter->action);
	return argv[0] && !strcmp(starter->action, argv[0]);
}

static const struct starter *find(const char *name, char *const *argv)
{
	for (size_t i = 0; i < SL_COUNT(starters); i++)
		if (!strcmp(starters[i].name, name) && does(&starters[i], argv))
			return &starters[i];
	return NULL;
}

/* The first word after Python's own options, as in "python -u -m MODULE" or "python /usr/bin/torchrun". */
static const struct starter *of_python(char *const *argv)
{
	while (argv[0] && argv[0][0] == '-' && strcmp(argv[0], "-m") && strcmp(argv[0], "-c"))
		argv++;
	if (argv[0] && !strcmp(argv[0], "-m"))
		argv++;
	return argv[0] ? find(basename(argv[0]), argv + 1) : NULL;
}

static const char *say_starters(char *const *argv, const char **name)
{
	const struct starter *found = argv[0] ? find(basename(argv[0]), argv + 1) : NULL;

	if (!found && argv[0] && !strncmp(basename(argv[0]), "python", 6))
		found = of_python(argv + 1);
	if (!found)
		return NULL;
	*name = found->name;
	return found->says;
}

static bool as_json; /* on standard output, instead of lines for people */
static unsigned lines;

static void line(const char *what, const char *format, ...) SL_PRINTF(2, 3);

static void line(const char *what, const char *format, ...)
{
	char text[8192];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!as_json)
		fprintf(stderr, "%-13s %s\n", what, text);
	else
		printf("%s{\"about\":\"%s\",\"text\":\"", lines++ ? "," : "", what);
	for (size_t at = 0, length; as_json && text[at]; at += length) {
		length = mbrlen(text + at, sizeof(text), &(mbstate_t){0});
		if (length > 4) { /* no UTF-8 */
			length = 1;
			putchar('?');
		} else if ((unsigned char)text[at] < ' ' || text[at] == '"' || text[at] == '\\')
			printf("\\u%04x", text[at]);
		else
			fwrite(text + at, 1, length, stdout);
	}
	fputs(as_json ? "\"}" : "", stdout);
}

#define UNWINDER "libunwind.so.8"

/* A library, a function of it that returns a number, and the number's meaning. */
static const struct library {
	const char *name, *soname, *function, *number;
} libraries[] = {
	{"CUDA driver", "libcuda.so.1", "cuDriverGetVersion", "version"},
	{"CUDA runtime", "libcudart.so.13", "cudaRuntimeGetVersion", "version"},
	{"CUDA runtime", "libcudart.so.12", "cudaRuntimeGetVersion", "version"},
	{"CUDA runtime", "libcudart.so.11.0", "cudaRuntimeGetVersion", "version"},
	{"HIP", "libamdhip64.so.7", "hipRuntimeGetVersion", "version"},
	{"HIP", "libamdhip64.so.6", "hipRuntimeGetVersion", "version"},
	{"HIP", "libamdhip64.so.5", "hipRuntimeGetVersion", "version"},
	{"HSA", "libhsa-runtime64.so.1", NULL, NULL},
	{"NCCL", "libnccl.so.2", "ncclGetVersion", "version"},
	{"NVML", "libnvidia-ml.so.1", "nvmlDeviceGetCount_v2", "devices"},
	{"native stacks", UNWINDER, NULL, NULL},
};

/* The agent looks for its own libraries beside itself first, as the wheel brings them. */
static void *open_library(const struct library *which, const char *agent)
{
	const char *slash = strrchr(agent, '/');
	char own_path[sizeof(((struct sl_launch *)0)->library) + 64];
	void *library;

	snprintf(own_path, sizeof(own_path), "%.*s%s", slash ? (int)(slash - agent) + 1 : 0, agent, which->soname);
	library = !strcmp(which->soname, UNWINDER) ? dlopen(own_path, RTLD_LAZY | RTLD_LOCAL) : NULL;
	return library ? library : dlopen(which->soname, RTLD_LAZY | RTLD_LOCAL);
}

/* Runs in a child, which a broken library or device may end. */
static void look(const struct library *which, const char *agent, char *answer, size_t size)
{
	void *library = open_library(which, agent);
	int (*ask)(int *) = library && which->function ? dlsym(library, which->function) : NULL, (*init)(unsigned), code, number;
	struct link_map *map;

	if (!library) {
		const char *why = dlerror();

		if (why && !strstr(why, "cannot open shared object file: No such file"))
			snprintf(answer, size, "%s", why);
		return;
	}
	init = dlsym(library, strcmp(which->name, "NVML") ? "cuInit" : "nvmlInit_v2");
	if (dlinfo(library, RTLD_DI_LINKMAP, &map))
		return;
	if (init && (code = init(0)))
		snprintf(answer, size, "%s: code %d of its first function: no GPU works here", map->l_name, code);
	else if (ask && !ask(&number))
		snprintf(answer, size, "%s  %s %d", map->l_name, which->number, number);
	else
		snprintf(answer, size, "%s", map->l_name);
}

static void check_libraries(const char *agent)
{
	size_t size = 4096;
	char *answer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; answer != MAP_FAILED && i < SL_COUNT(libraries); i++) {
		pid_t child;
		int status = 0;

		*answer = 0;
		child = fork();
		if (!child) {
			alarm(20); /* ends a library that hangs on a broken device */
			look(&libraries[i], agent, answer, size);
			_exit(0);
		}
		if (child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status))
			snprintf(answer, size, "%s: loading it died of signal %d", libraries[i].soname, WTERMSIG(status));
		if (*answer)
			line(libraries[i].name, "%s", answer);
		else
			line(libraries[i].name, "%s not found (a program may bundle its own)", libraries[i].soname);
	}
}

static void check_python(const char *python)
{
	static const char program[] = "import sys; print(\"%d.%d.%d\" % sys.version_info[:3])\n"
				      "from importlib.metadata import version; print(\"with PyTorch\", version(\"torch\"))";
	char command[4600], answer[128] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "'%s' -c '%s' 2>/dev/null", python, program);
	pipe = strncmp(basename(python), "python", 6) || strpbrk(python, "'\\") ? NULL : popen(command, "r");
	if (!pipe)
		return;
	answer[fread(answer, 1, sizeof(answer) - 1, pipe)] = 0;
	pclose(pipe);
	for (char *at = answer; (at = strchr(at, '\n'));)
		*at = at[1] ? ' ' : 0;
	line("Python", "%s (stacks are recorded of CPython 3.9 to 3.15)", answer);
}

static bool check_command(const struct sl_launch *run)
{
	char path[4096], interpreter[4096];
	const char *why, *starter, *says = say_starters(run->command, &starter);
	int error = sl_paths_command(run->command[0], path, sizeof(path));

	if (says)
		line("launcher", "%s: %s", starter, says);
	if (error) {
		line("command", "%s: %s", run->command[0], error == ENOENT ? "not found" : "not executable");
		return false;
	}
	why = sl_target_hinders(path, interpreter, sizeof(interpreter));
	line("command", "%s", why ? why : path);
	if (!why)
		check_python(strncmp(basename(path), "python", 6) ? interpreter : path); /* pyenv's interpreters are scripts */
	return !why;
}

static bool check_folder(const struct sl_launch *run)
{
	char folder[sizeof(run->directory)];
	int err = sl_folder_prepare(run, folder, sizeof(folder));
	const char *type = sl_netfs_name(folder), *why = sl_netfs_why(folder);
	struct statvfs space = {0};

	statvfs(folder, &space);
	if (err)
		line("trace", "%s: %s: %s", run->directory, folder, strerror(err));
	else
		line("trace", "%s  %s%s%.1f GiB free", run->directory, type ? type : "", type ? ", " : "",
		     (double)space.f_bavail * (double)space.f_frsize / (1 << 30));
	if (why)
		line("ring", SL_REMOTE_RING ", because %s: after a kill run stormlog-analyze on the node", why);
	sl_folder_leave(folder);
	return !err;
}

static bool check_agent(struct sl_launch *run)
{
	const char *before = getenv("LD_PRELOAD"), *why = "no libstormlog_preload.so beside stormlog-run or in ../lib";

	if (sl_paths_library(run->library, sizeof(run->library)))
		why = sl_link_library(run->library, sizeof(run->library));
	line("agent", "%s  %s", run->library, why ? why : SL_VERSION);
	if (before && *before)
		line("LD_PRELOAD", "%s%s", before, strstr(before, run->library) ? "" : ": the agent goes before it");
	return !why;
}

int sl_check_run(struct sl_launch *run)
{
	bool records;

	as_json = run->json;
	setlocale(LC_CTYPE, "C.UTF-8");
	if (as_json)
		printf("{\"schema\":\"stormlog.run_check\",\"schema_version\":1,\"lines\":[");
	records = check_agent(run); /* each prints its lines, whatever the others found */
	records = (!run->command[0] || check_command(run)) && records;
	records = check_folder(run) && records;
	if (run->dry) {
		bool can = sl_dry_can(run);

		line("dry run", "%s: %s", run->dry, can ? "no GPU is used, and no library of NVIDIA's" : "not here, as said above");
		records = can && records;
	} else
		check_libraries(run->library);
	line("not seen", "calls of statically linked programs, of libraries opened with RTLD_DEEPBIND or dlmopen, and of programs "
			 "started without our environment (env -i)");
	if (as_json)
		printf("],\"records\":%s}\n", records ? "true" : "false");
	return records ? 0 : SL_LAUNCH_FAILED;
}
