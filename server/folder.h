/* SPDX-License-Identifier: MIT */
/* Folders of the store, whose content is not trusted. */
#pragma once

#include <dirent.h>
#include <stdint.h>

/* To be listed and closed.  follow: O_NOFOLLOW where the name may be no link, or 0.  NULL: errno. */
DIR *sl_folder_open(int at, const char *name, int follow);
/* Removes a folder with its content: links are removed, not followed. */
void sl_folder_remove(int at, const char *name);
/* Bytes of all files in a folder; 0: there is none. */
uint64_t sl_folder_bytes(int at, const char *name);
