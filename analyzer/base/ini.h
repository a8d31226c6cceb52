/* SPDX-License-Identifier: MIT */
/*
 * Reads .stormlog.ini: [section], NAME = VALUE; '#' and ';' begin comments.  A name may occur several times, where its reader takes
 * it.  An unknown name is an error, in the sections of other readers too, because it may be a misspelt limit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Calls `take` for every NAME = VALUE of a section; for [check] also for those before the first section.  take returns NULL, or
 * a static text that says what is wrong.  False: `why` says what, with file and line.
 */
typedef const char *sl_ini_take(void *context, const char *name, const char *value);
bool sl_ini_read(const char *path, const char *section, sl_ini_take *take, void *context, char *why, size_t size);

/* Finds .stormlog.ini in this folder or one above, up to the one that contains .git.  False: there is none. */
bool sl_ini_find(char *path, size_t size);

/* True: the file that was found may have been put there by somebody who is neither this user, root nor the owner of its folder. */
bool sl_ini_is_strangers(const char *path);
#define SL_INI_STRANGERS "%s belongs to another user than you, root and its folder's owner; --config %s uses it"
