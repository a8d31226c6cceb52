/* SPDX-License-Identifier: MIT */
/* Removes a folder with its content, none of which is trusted: links are removed, not followed. */
#pragma once

#include <stdint.h>

void sl_folder_remove(int at, const char *name);
/* Bytes of all files in a folder; 0: there is none. */
uint64_t sl_folder_bytes(int at, const char *name);
