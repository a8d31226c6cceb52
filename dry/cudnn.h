/* SPDX-License-Identifier: MIT */
/* What the files of the dry cuDNN share. */
#pragma once

#include <stdint.h>

int64_t sl_cudnn_width(int type); /* bytes of an element, by cudnnDataType_t */
