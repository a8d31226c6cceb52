/* SPDX-License-Identifier: MIT */
/* Names under which libtensorflow_framework.so.2 exports its allocator.  namespace: "3tsl" from 2.9 on, "10tensorflow" before. */
#pragma once

#define SL_TENSORFLOW_ALLOCATE(namespace) "_ZN" namespace "12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE"
#define SL_TENSORFLOW_FREE(namespace)	  "_ZN" namespace "12BFCAllocator13DeallocateRawEPv"
