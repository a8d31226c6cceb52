/* SPDX-License-Identifier: MIT */
/*
 * Every request on the command line, "name:version:flags", through cuGetProcAddress of both ABIs: result, status and
 * where the pointer is, one line each.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void show(const char *abi, const char *request, int result, int status, void *found)
{
	Dl_info info = {0};
	const char *object = "-";

	if (found && dladdr(found, &info))
		object = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
	printf("%s %s %d %d %s %#lx %s\n", abi, request, result, status, object,
	       found ? (long)((char *)found - (char *)info.dli_fbase) : 0, info.dli_sname ? info.dli_sname : "-");
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
	int (*v1)(const char *, void **, int, uint64_t) =
		(int (*)(const char *, void **, int, uint64_t))dlsym(driver, "cuGetProcAddress");
	int (*v2)(const char *, void **, int, uint64_t, int *) =
		(int (*)(const char *, void **, int, uint64_t, int *))dlsym(driver, "cuGetProcAddress_v2");
	char line[256], name[128];
	int version, flags;

	if (!init || !v1 || !v2 || init(0))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		void *found = NULL;
		int status = -7, result;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%127s %d %d", name, &version, &flags) != 3)
			return 2;
		for (char *c = line; *c; c++)
			if (*c == ' ')
				*c = ':';
		result = v1(name, &found, version, (uint64_t)flags);
		show("v1", line, result, -7, found);
		found = NULL;
		result = v2(name, &found, version, (uint64_t)flags, &status);
		show("v2", line, result, status, found);
		found = NULL;
		result = v2(name, &found, version, (uint64_t)flags, NULL);
		show("v2null", line, result, -7, found);
	}
	return 0;
}
