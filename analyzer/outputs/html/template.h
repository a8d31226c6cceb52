/* SPDX-License-Identifier: MIT */
/* The page without its data, bundled at build time by bundle.py; without node and npm it is no_page.c. */
#pragma once

#include <stddef.h>

extern const char sl_html_before[], sl_html_after[]; /* the data goes between the two */
extern const size_t sl_html_before_size, sl_html_after_size;
