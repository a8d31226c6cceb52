/* SPDX-License-Identifier: MIT */
/*
 * A libFuzzer target (scripts/fuzz) that reads files of a folder in /dev/shm; FUZZ in the environment says which of `targets` runs.
 * Without libFuzzer the program mutates each seed: PROGRAM ROUNDS SEED....  A program's only source includes it.
 */
#pragma once

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct target {
	const char *name;
	void (*run)(const uint8_t *bytes, size_t size);
};
extern const struct target targets[]; /* ends with zeroes */

static char folder[] = "/dev/shm/stormlog-fuzz-XXXXXX";
static FILE *nowhere;

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *put(const char *name, const void *bytes, size_t size)
{
	const char *path = at(name);
	FILE *file = fopen(path, "we");

	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
	return path;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	return remove(path);
}

static void remove_folder(void)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void (*target)(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *name = getenv("FUZZ");

	for (const struct target *one = targets; name && one->name; one++)
		if (!strcmp(one->name, name))
			target = one->run;
	nowhere = fopen("/dev/null", "we");
	if (!target || !nowhere || !mkdtemp(folder) || !freopen("/dev/null", "we", stdout)) {
		fputs(target ? "fuzz: no folder in /dev/shm\n" : "fuzz: FUZZ names what is fuzzed\n", stderr);
		exit(2);
	}
	atexit(remove_folder);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	target(bytes, size);
	return 0;
}

#ifndef LIBFUZZER
#include "alone.h"

int main(int argc, char **argv)
{
	LLVMFuzzerInitialize(&argc, &argv);
	if (!freopen("/dev/null", "we", stderr)) /* targets print there what is wrong with each input */
		return 1;
	return alone_main(argc, argv);
}
#endif
