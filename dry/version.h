/* SPDX-License-Identifier: MIT */
/* The release of a library of NVIDIA's that the job has installed beside PyTorch, because PyTorch asks for it and decides by it. */
#pragma once

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

/*
 * Reads it from the name of the package's folder, which lies beside the folder of the library that `caller` is code of: two folders
 * up from site-packages/torch/lib/libtorch_cuda.so. A number that is not found keeps its value in `version`.
 */
static inline void sl_dry_version(const void *caller, const char *package, int version[3])
{
	char pattern[4096];
	Dl_info info;
	glob_t found;

	if (!dladdr(caller, &info) || !info.dli_fname || !strrchr(info.dli_fname, '/'))
		return;
	snprintf(pattern, sizeof(pattern), "%.*s/../../%s-*.dist-info", (int)(strrchr(info.dli_fname, '/') - info.dli_fname),
		 info.dli_fname, package);
	if (!glob(pattern, 0, NULL, &found)) {
		const char *name = strrchr(found.gl_pathv[0], '/');

		sscanf(strchr(name, '-') + 1, "%d.%d.%d", &version[0], &version[1], &version[2]);
		globfree(&found);
	}
}
