/* SPDX-License-Identifier: MIT */
/* Which of the files that a process has mapped are a GPU vendor's. */
#ifndef ATTACH_LIBRARIES_H
#define ATTACH_LIBRARIES_H

#include "attach/mappings.h"

/*
 * May this be a vendor's library?  Copies have names of their own (libcudart-d0da41ae.so.11.0 in wheels), so its exports
 * decide. *runtime: the major version in a runtime's name.
 */
bool sl_libraries_may_be(const struct sl_mapping *mapping, unsigned *runtime);

/* One of them is mapped. */
bool sl_libraries_any(long pid);

#endif
