/* SPDX-License-Identifier: MIT */
/* A folder below another with all that is in it, of which nothing is trusted: links are removed, not followed. */
#ifndef SERVER_FOLDER_H
#define SERVER_FOLDER_H

void sl_folder_remove(int at, const char *name);

#endif
