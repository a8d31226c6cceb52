/* SPDX-License-Identifier: MIT */
/* Look-ups: cuGetProcAddress in both ABIs by (name, version, flags), and the simulator's own export table. */
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };
enum { FOUND = 0, SYMBOL_NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };

/* Declared by assembler name, because only their addresses are needed. */
#define EXPORT_OF(export)		    address_of_##export
#define SIM_NAME(name, since, flag, export) extern char EXPORT_OF(export)[] __asm__(#export);
#include "driver_names.def"
#undef SIM_NAME

static const struct row {
	const char *name;
	int since, flag;
	void *function;
} rows[] = {
#define SIM_NAME(name, since, flag, export) {#name, since, flag, EXPORT_OF(export)},
#include "driver_names.def"
#undef SIM_NAME
};

static int compare(const void *key, const void *row)
{
	return strcmp(key, ((const struct row *)row)->name);
}

/* The newest variant of that name that is not newer than the version; a per-thread one where asked for and present. */
static void *look_up(const char *name, int version, uint64_t flags, int *status)
{
	const struct row *row = bsearch(name, rows, SIM_ARRAY_SIZE(rows), sizeof rows[0], compare);
	const struct row *best = NULL, *end = rows + SIM_ARRAY_SIZE(rows);
	while (row && row > rows && !strcmp(row[-1].name, name))
		row--;
	*status = row ? VERSION_NOT_SUFFICIENT : SYMBOL_NOT_FOUND;
	for (; row && row < end && !strcmp(row->name, name); row++) {
		if (row->since > version || row->since > sim_config.driver_version)
			continue;
		if (row->flag && !(flags & PER_THREAD_STREAM))
			continue;
		if (!best || row->flag > best->flag || (row->flag == best->flag && row->since > best->since))
			best = row;
	}
	if (best)
		*status = FOUND;
	return best ? best->function : NULL;
}

/* SIM_LOOKUPS=file: writes one line for each look-up: name version flags found. */
static void note(const char *name, int version, uint64_t flags, bool found)
{
	const char *path = getenv("SIM_LOOKUPS");
	int fd = path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	if (fd < 0)
		return;
	dprintf(fd, "%s %d %llu %d\n", *name ? name : "(empty)", version, (unsigned long long)flags, found);
	close(fd);
}

static int answer(const char *name, void **out, int version, uint64_t flags, int *status)
{
	int ignored;
	if (!status)
		status = &ignored;
	if (!name || !out || version < 0 || (flags & ~3ull) || flags == 3)
		return SIM_INVALID_VALUE;
	*out = look_up(name, version, flags, status);
	note(name, version, flags, *out != NULL);
	return *out ? SIM_OK : SIM_NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	SIM_BEGIN(cuGetProcAddress, QUIET, .needs = 2);
	SIM_RETURN(answer(name, out, version, flags, NULL));
}

/* Since the second version a missing name is a success with a status. */
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
	SIM_BEGIN(cuGetProcAddress_v2, QUIET, .needs = 2);
	int error = answer(name, out, version, flags, status);
	SIM_RETURN(error == SIM_NOT_FOUND && status ? SIM_OK : error);
}

static const struct sim_table table = {sizeof table, sim_call_open, sim_call_close};

int cuGetExportTable(const void **out, const unsigned char uuid[16])
{
	if (!out || !uuid)
		return SIM_INVALID_VALUE;
	if (memcmp(uuid, sim_journal_uuid, 16)) {
		sim_table_missing(__builtin_return_address(0));
		return SIM_INVALID_VALUE;
	}
	*out = &table;
	return SIM_OK;
}

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{0, "CUDA_SUCCESS", "no error"},
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

static int describe(int code, const char **out, bool name)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = NULL;
	for (size_t i = 0; i < SIM_ARRAY_SIZE(errors); i++)
		if (errors[i].code == code)
			*out = name ? errors[i].name : errors[i].text;
	return *out ? SIM_OK : SIM_INVALID_VALUE;
}

int cuGetErrorName(int code, const char **out)
{
	return describe(code, out, true);
}

int cuGetErrorString(int code, const char **out)
{
	return describe(code, out, false);
}
