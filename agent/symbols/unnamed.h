/* SPDX-License-Identifier: MIT */
/*
 * Libraries of ours that no name finds.  The loader gives whoever asks for "liblzma.so.5" the one that is loaded already, of
 * whatever version: a library that the program opens later would get the system's in place of the one in its own RUNPATH
 * (conda, spack, Nix).
 */
#pragma once

#include <stdbool.h>

/*
 * dlopen of `path` with RTLD_NOW and RTLD_LOCAL, after which it and what it brought along are found by no name.  Where the
 * program has that library, by this name, it is that one, and keeps its name.  NULL: cannot be opened.  Takes the loader's
 * locks.
 */
void *sl_unnamed_open(void *(*open)(const char *path, int flags), const char *path);
