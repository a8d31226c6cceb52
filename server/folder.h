/* SPDX-License-Identifier: MIT */
/* Folders of the store, whose content is not trusted. */
#pragma once

#include <dirent.h>
#include <stdint.h>

/* Opens a folder, which the caller closes.  `follow`: O_NOFOLLOW refuses a link, 0 follows it.  NULL: errno. */
DIR *sl_folder_open(int at, const char *name, int follow);
/* Removes a folder with its content: links are removed, not followed. */
void sl_folder_remove(int at, const char *name);
/* Bytes of all files in a folder; 0: there is none. */
uint64_t sl_folder_bytes(int at, const char *name);
