/* SPDX-License-Identifier: MIT */
/*
 * A library that carries NVIDIA's runtime inside itself asks the driver for private tables first. It cannot run dry, so the
 * process ends with its name.
 */
#include "tests/sim/sim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REFUSED = 124 }; /* the exit status of a process that cannot be dry; doc/dry-run.md */

/* Tools ask too, and do without. */
static const char *const tools[] = {"libcupti", "libnvrtc", "libnvJitLink", "libcufile", "libnvToolsExt", "libstormlog"};

void sim_table_missing(const void *caller)
{
	Dl_info info;
	const char *file = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "this program", *slash = strrchr(file, '/');

	if (sim_config.off)
		return;
	for (size_t i = 0; i < SIM_ARRAY_SIZE(tools); i++)
		if (!strncmp(slash ? slash + 1 : file, tools[i], strlen(tools[i])))
			return;
	dprintf(STDERR_FILENO,
		"stormlog: DRY RUN ended: %s carries NVIDIA's CUDA runtime inside itself, which accepts only a real device: run "
		"the job "
		"without it, or record it on a GPU\n",
		file);
	_exit(REFUSED);
}
