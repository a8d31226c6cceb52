/* SPDX-License-Identifier: MIT */
/*
 * Names in definition maps masked in place, letter by letter, so that nothing changes its length: paths, functions,
 * labels, hosts, arguments, values of the environment.  The same name has the same mask within one pack and another
 * one in the next.  Vendors' libraries, the system's folders and punctuation stay: without them a trace says nothing.
 */
#ifndef ANALYZER_EXPORTS_REDACT_H
#define ANALYZER_EXPORTS_REDACT_H

#include <stddef.h>
#include <stdint.h>

/* All whole maps in `bytes`. */
void sl_redact_maps(uint8_t *bytes, size_t size, uint64_t salt);

#endif
