/* SPDX-License-Identifier: MIT */
/* .stormlog.ini: [section], NAME = VALUE; '#' and ';' begin comments.  A name may come several times. */
#ifndef ANALYZER_BASE_INI_H
#define ANALYZER_BASE_INI_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Every NAME = VALUE of a section; of [check] those before the first section too.  take: NULL, or a static text that says what is wrong with it.
 * false: why, with file and line, in `why`.
 */
typedef const char *sl_ini_take(void *context, const char *name, const char *value);
bool sl_ini_read(const char *path, const char *section, sl_ini_take *take, void *context, char *why, size_t size);

/* .stormlog.ini of this directory or of one above, up to the one that holds .git.  false: there is none. */
bool sl_ini_find(char *path, size_t size);

#endif
