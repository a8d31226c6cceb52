/* SPDX-License-Identifier: MIT */
/*
 * Writing a folder of files so that a reader sees all of it or nothing: built beside its place under a name with a
 * dot in front, then renamed. Folders are 0700, files 0600.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "analyzer/base/arena.h"
#include "analyzer/base/json.h"

struct sl_folder {
	struct sl_arena arena;
	const char *place, *temporary;
	int error;	    /* errno of the first thing that went wrong, 0 for none */
	const char *failed; /* the file it happened to */
};

/* Makes the parents too. The place must not exist, or be an empty folder. */
bool sl_folder_begin(struct sl_folder *folder, const char *place);

/* A new file in it, NULL on failure. Close with sl_folder_close. */
FILE *sl_folder_open(struct sl_folder *folder, const char *name);
bool sl_folder_close(struct sl_folder *folder, FILE *file, const char *name);

/* A JSON document as a file: open, then close what json points to. */
struct sl_json *sl_folder_json(struct sl_folder *folder, const char *name, FILE **file);
bool sl_folder_json_close(struct sl_folder *folder, struct sl_json *j, FILE *file, const char *name);

/* Rename into place when nothing went wrong, else remove; frees. false: nothing is there and errno says why. */
bool sl_folder_end(struct sl_folder *folder);

/* Remove a folder and all in it. */
void sl_folder_remove(const char *path);
