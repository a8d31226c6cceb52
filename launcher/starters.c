/* SPDX-License-Identifier: MIT */
/* Programs that start programs elsewhere, and the command that records those (doc/launching.md says more). */
#include "launcher/launcher.h"

#include <string.h>

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

const char *sl_starters_say(char *const *argv, const char **name)
{
	const struct starter *found = argv[0] ? find(basename(argv[0]), argv + 1) : NULL;

	if (!found && argv[0] && !strncmp(basename(argv[0]), "python", 6))
		found = of_python(argv + 1);
	if (!found)
		return NULL;
	*name = found->name;
	return found->says;
}
