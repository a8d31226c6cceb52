/* SPDX-License-Identifier: MIT */
/*
 * NVTX 3 is a header: a program has no symbol to interpose.  At its first range it opens the library that
 * NVTX_INJECTION64_PATH names, so that is set to our own path, which dlopen finds loaded already.  The
 * launcher does the same; this is for a bare LD_PRELOAD.
 *
 * No setenv: it allocates, and the program's allocator may not be ready.  The environment gets a new vector,
 * which the C library copies when it is changed next.
 */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pages.h"
#include "agent/labels.h"
#include "common/text.h"
#include "common/base.h"

#define VARIABLE "NVTX_INJECTION64_PATH"

extern char **environ;

static SL_STARTUP_TEXT int find_own_path(struct dl_phdr_info *info, size_t size, void *path)
{
	ElfW(Addr) offset = (ElfW(Addr)) & find_own_path - info->dlpi_addr;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && offset - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
			*(const char **)path = info->dlpi_name;
	return *(const char **)path != NULL;
}

static SL_STARTUP_TEXT bool is_set(const char *variable, const char *value)
{
	const char *now = getenv(variable);

	return now && !strcmp(now, value);
}

SL_STARTUP_TEXT void sl_labels_construct(void)
{
	/* Together and aligned: every process of a job pays for each page that is touched here. */
	static _Alignas(512) char usual[4096];
	const char *path = NULL;
	size_t count = 0, bytes;
	struct sl_text entry;
	char **vector;

	if (getenv(VARIABLE) || is_set("STORMLOG_LABELS", "off") || is_set("STORMLOG_DISABLE", "1"))
		return;
	dl_iterate_phdr(find_own_path, &path);
	if (!path || !*path) /* this is a program, not the library */
		return;
	while (environ && environ[count])
		count++;
	bytes = strlen(VARIABLE "=") + strlen(path) + 1;
	vector = (char **)(bytes + (count + 2) * sizeof(*vector) <= sizeof(usual)
				   ? usual
				   : sl_pages_map(bytes + (count + 2) * sizeof(*vector)));
	if (!vector)
		return;
	entry = sl_text_begin((char *)&vector[count + 2], bytes);
	sl_text_add(&entry, VARIABLE "=");
	sl_text_add(&entry, path);
	if (count)
		memcpy(vector, environ, count * sizeof(*vector));
	vector[count] = entry.text;
	environ = vector;
}
