/* SPDX-License-Identifier: MIT */
#include "launcher/probe.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"

static const struct {
	const char *name, *prefix, *other; /* calls that begin with prefix, except those that begin with other */
	const char *sonames[4];
} libraries[SL_PROBE_LIBRARIES] = {
	[SL_PROBE_CUDA_DRIVER] = {"CUDA driver", "cu", "cuda", {"libcuda.so.1"}},
	[SL_PROBE_CUDA_RUNTIME] = {"CUDA runtime", "cuda", NULL, {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}},
	[SL_PROBE_HIP] = {"HIP", "hip", NULL, {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}},
	[SL_PROBE_HSA] = {"HSA", "hsa", NULL, {"libhsa-runtime64.so.1"}},
	[SL_PROBE_NCCL] = {"NCCL", "nccl", NULL, {"libnccl.so.2", "librccl.so.1"}},
	[SL_PROBE_NVML] = {"NVML", "nvml", NULL, {"libnvidia-ml.so.1"}},
	[SL_PROBE_LIBUNWIND] = {"libunwind", NULL, NULL, {"libunwind.so.8"}},
};

const char *sl_probe_name(enum sl_probe_which library)
{
	return libraries[library].name;
}

unsigned sl_probe_versions(enum sl_probe_which library)
{
	unsigned count = 0;

	while (count < SL_COUNT(libraries[library].sonames) && libraries[library].sonames[count])
		count++;
	return count;
}

/* --- the agent's exports ---------------------------------------------------------------------------- */

const char *sl_probe_map(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *map = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &status) && (*size = (size_t)status.st_size) > sizeof(Elf64_Ehdr))
		map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	return map == MAP_FAILED ? NULL : map;
}

/* Our own library, just built or installed, so its tables are trusted.  It stays mapped because names point into it. */
struct sl_probe_calls sl_probe_calls(const char *library)
{
	struct sl_probe_calls calls = {library, NULL, 0};
	size_t size;
	const char *file = sl_probe_map(library, &size);
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Shdr *sections;

	if (!file || memcmp(file, ELFMAG, SELFMAG) || head->e_shoff + head->e_shnum * sizeof(*sections) > size)
		return calls;
	sections = (const void *)(file + head->e_shoff);
	for (unsigned i = 0; i < head->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
		const char *strings;
		size_t count = sections[i].sh_size / sizeof(*symbols);

		if (sections[i].sh_type != SHT_DYNSYM)
			continue;
		strings = file + sections[sections[i].sh_link].sh_offset;
		calls.names = calloc(count, sizeof(*calls.names));
		for (size_t j = 0; calls.names && j < count; j++)
			if (symbols[j].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbols[j].st_info) == STT_FUNC)
				calls.names[calls.count++] = strings + symbols[j].st_name;
	}
	return calls;
}

/* --- in the child ----------------------------------------------------------------------------------- */

static int ask(void *library, const char *function, int *value)
{
	int (*call)(int *) = dlsym(library, function);

	return call ? call(value) : -1;
}

static void answer_cuda_driver(void *library, char *answer, size_t size)
{
	int (*init)(unsigned) = dlsym(library, "cuInit"), version = 0, count = 0, code = init ? init(0) : -1;

	ask(library, "cuDriverGetVersion", &version);
	if (code)
		snprintf(answer, size, "CUDA %d.%d, cuInit fails with %d: no GPU works here", version / 1000, version % 1000 / 10,
			 code);
	else if (!ask(library, "cuDeviceGetCount", &count))
		snprintf(answer, size, "CUDA %d.%d, %d device%s", version / 1000, version % 1000 / 10, count,
			 count == 1 ? "" : "s");
}

static void answer_nvml(void *library, char *answer, size_t size)
{
	int (*init)(void) = dlsym(library, "nvmlInit_v2"),
	    (*driver)(char *, unsigned) = dlsym(library, "nvmlSystemGetDriverVersion");
	int code = init ? init() : -1, count = 0;
	char version[80] = "";

	if (code) {
		snprintf(answer, size, "nvmlInit fails with %d: samples by calls of the program", code);
		return;
	}
	if (driver)
		driver(version, sizeof(version));
	ask(library, "nvmlDeviceGetCount_v2", &count);
	snprintf(answer, size, "driver %s, %d device%s", version, count, count == 1 ? "" : "s");
}

static void answer_of(enum sl_probe_which which, void *library, char *answer, size_t size)
{
	int version = 0;

	switch (which) {
	case SL_PROBE_CUDA_DRIVER:
		answer_cuda_driver(library, answer, size);
		break;
	case SL_PROBE_NVML:
		answer_nvml(library, answer, size);
		break;
	case SL_PROBE_CUDA_RUNTIME:
		if (!ask(library, "cudaRuntimeGetVersion", &version))
			snprintf(answer, size, "%d.%d", version / 1000, version % 1000 / 10);
		break;
	case SL_PROBE_HIP:
		if (!ask(library, "hipRuntimeGetVersion", &version))
			snprintf(answer, size, "%d.%d", version / 10000000, version / 100000 % 100);
		break;
	case SL_PROBE_LIBUNWIND:
		snprintf(answer, size, "native stacks are recorded");
		break;
	case SL_PROBE_NCCL:
		if (!ask(library, "ncclGetVersion", &version))
			snprintf(answer, size, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
		break;
	default:
		break;
	}
}

static bool is_of(enum sl_probe_which which, const char *call)
{
	const char *prefix = libraries[which].prefix, *other = libraries[which].other;

	return prefix && !strncmp(call, prefix, strlen(prefix)) && (!other || strncmp(call, other, strlen(other)));
}

/* As the agent opens it: libunwind beside itself first. */
static void *open_library(enum sl_probe_which which, const char *soname, const char *agent)
{
	const char *slash = which == SL_PROBE_LIBUNWIND ? strrchr(agent, '/') : NULL;
	void *library = NULL;
	char path[4096];

	if (slash && (size_t)snprintf(path, sizeof(path), "%.*s%s", (int)(slash + 1 - agent), agent, soname) < sizeof(path))
		library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	return library ? library : dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
}

static void look(enum sl_probe_which which, const char *soname, const struct sl_probe_calls *calls, struct sl_probe_result *probe)
{
	void *library = open_library(which, soname, calls->agent);
	struct link_map *map;

	if (!library) {
		const char *error = dlerror();

		/* A library that is missing is normal; one that is there but does not load is reported. */
		if (error && !strstr(error, "cannot open shared object file: No such file"))
			snprintf(probe->answer, sizeof(probe->answer), "%s", error);
		return;
	}
	if (!dlinfo(library, RTLD_DI_LINKMAP, &map))
		snprintf(probe->path, sizeof(probe->path), "%s", map->l_name);
	for (size_t i = 0; i < calls->count; i++)
		probe->calls += is_of(which, calls->names[i]) && dlsym(library, calls->names[i]);
	answer_of(which, library, probe->answer, sizeof(probe->answer));
}

/* --- in the launcher -------------------------------------------------------------------------------- */

bool sl_probe_library(enum sl_probe_which library, unsigned version, const struct sl_probe_calls *calls,
		      struct sl_probe_result *probe)
{
	struct sl_probe_result *shared;
	int status = 0;
	pid_t child;

	memset(probe, 0, sizeof(*probe));
	if (version >= sl_probe_versions(library))
		return false;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return false;
	child = fork();
	if (!child) {
		alarm(20); /* ends a library that hangs on a broken device */
		look(library, libraries[library].sonames[version], calls, shared);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	*probe = *shared;
	munmap(shared, sizeof(*shared));
	if (WIFSIGNALED(status))
		snprintf(probe->answer, sizeof(probe->answer), "loading it died of signal %d", WTERMSIG(status));
	return *probe->path;
}
