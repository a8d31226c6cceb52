/* SPDX-License-Identifier: MIT */
/* Removes a folder with its content, none of which is trusted: links are removed, not followed. */
#ifndef SERVER_FOLDER_H
#define SERVER_FOLDER_H

void sl_folder_remove(int at, const char *name);

#endif
