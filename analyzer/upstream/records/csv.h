/* SPDX-License-Identifier: MIT */
/* Telemetry exported as CSV: the first row names the columns, each further row is one record. */
#pragma once

#include <stdio.h>

#include "analyzer/upstream/records/reader.h"

/* Hands each row to reader->record; the line is the one the row begins on. */
void sl_csv_read(FILE *file, const char *path, const struct sl_source_reader *reader);
