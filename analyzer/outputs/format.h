/* SPDX-License-Identifier: MIT */
#include "analyzer/format.h"
