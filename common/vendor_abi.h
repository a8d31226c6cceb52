/* SPDX-License-Identifier: MIT */
/*
 * The vendor types that the rows of hooks/ name, so that building needs neither CUDA nor ROCm.  Only what a row
 * reads has members; tests/abi compares sizes and offsets with the vendors' headers, CUDA 11 to 13 and HIP 5 and 6.
 * (Longer than other files: a table.)
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A file that must tell pointers to data from handles by size defines these first, as empty structures (tools/attach/rows.c). */
#ifndef HANDLE
#define HANDLE(name) typedef struct name##_object *name;
#define OPAQUE(name) typedef struct name##_opaque name;
#endif
#define NUMBER(name)   typedef int name;
#define NUMBERED(name) enum name { name##_unused };

/* --- CUDA driver ---------------------------------------------------------------------------------------- */

NUMBER(CUresult)
NUMBER(CUdevice)
typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle;
typedef uint64_t CUlogicalEndpointId, cuuint64_t;
typedef uint32_t cuuint32_t;

HANDLE(CUarray)
HANDLE(CUcontext)
HANDLE(CUcoredumpCallbackHandle)
HANDLE(CUdevResourceDesc)
HANDLE(CUevent)
HANDLE(CUexternalMemory)
HANDLE(CUfunction)
HANDLE(CUgraph)
HANDLE(CUgraphExec)
HANDLE(CUgraphNode)
HANDLE(CUgraphicsResource)
HANDLE(CUgreenCtx)
HANDLE(CUkernel)
HANDLE(CUlibrary)
HANDLE(CUlinkState)
HANDLE(CUmemoryPool)
HANDLE(CUmipmappedArray)
HANDLE(CUmodule)
HANDLE(CUstream)
typedef void (*CUcoredumpStatusCallback)(void *data, int pid, CUdevice device);

NUMBER(CUdriverProcAddressQueryResult)
NUMBER(CUfunc_cache)
NUMBER(CUfunction_attribute)
NUMBER(CUgraphExecUpdateResult)
NUMBER(CUjitInputType)
NUMBER(CUjit_option)
NUMBER(CUlibraryOption)
NUMBER(CUlimit)
NUMBER(CUlogicalEndpointIpcHandleType)
NUMBER(CUmemAllocationHandleType)
NUMBER(CUmemAllocationType)
NUMBER(CUmemPool_attribute)
NUMBER(CUmemRangeHandleType)
NUMBER(CUstreamCaptureMode)

OPAQUE(CUDA_BATCH_MEM_OP_NODE_PARAMS)
OPAQUE(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS)
OPAQUE(CUDA_EXT_SEM_WAIT_NODE_PARAMS)
OPAQUE(CUDA_KERNEL_NODE_PARAMS)
OPAQUE(CUDA_KERNEL_NODE_PARAMS_v1)
OPAQUE(CUarrayMapInfo)
OPAQUE(CUcheckpointCheckpointArgs)
OPAQUE(CUcheckpointRestoreArgs)
OPAQUE(CUctxCreateParams)
OPAQUE(CUexecAffinityParam)
OPAQUE(CUgraphEdgeData)
OPAQUE(CUgraphExecUpdateResultInfo)
OPAQUE(CUipcEventHandle)
OPAQUE(CUlaunchConfig)
OPAQUE(CUlogicalEndpointProp)
OPAQUE(CUmemAccessDesc)
OPAQUE(CUmemPoolPtrExportData)

typedef struct {
	char reserved[64];
} CUipcMemHandle; /* passed by value */

typedef struct {
	int type; /* SL_LOCATION_DEVICE: id is the ordinal */
	int id;
} CUmemLocation;
#define SL_LOCATION_DEVICE 1

typedef struct {
	unsigned int Width, Height, Format, NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct {
	size_t Width, Height;
	unsigned int Format, NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
	unsigned int Width, Height, Depth, Format, NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef struct {
	size_t Width, Height, Depth;
	unsigned int Format, NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
	int type, requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	unsigned char allocFlags[8];
} CUmemAllocationProp;

typedef struct {
	int allocType, handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned char reserved[56];
} CUmemPoolProps;

typedef struct {
	CUmemPoolProps poolProps;
	const CUmemAccessDesc *accessDescs;
	size_t accessDescCount, bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
	int type, reserved0[3];
	union {
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		struct {
			CUdeviceptr dptr;
		} free;
		long long reserved1[29];
	};
	long long reserved2;
} CUgraphNodeParams;
#define SL_GRAPH_NODE_ALLOC 10
#define SL_GRAPH_NODE_FREE  11

typedef struct {
	cuuint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct {
	unsigned int numDevices;
	size_t size;
	unsigned long long handleTypes, flags;
} CUmulticastObjectProp;

typedef struct {
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
	} handle;
	unsigned long long size;
	unsigned int flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct {
	unsigned long long offset, size;
	unsigned int flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef struct {
	unsigned long long offset;
	CUDA_ARRAY3D_DESCRIPTOR arrayDesc;
	unsigned int numLevels, reserved[16];
} CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;

/* --- CUDA runtime --------------------------------------------------------------------------------------- */

NUMBER(cudaError_t)
HANDLE(cudaArray_t)
HANDLE(cudaDevResourceDesc_t)
HANDLE(cudaEvent_t)
HANDLE(cudaExecutionContext_t)
HANDLE(cudaExternalMemory_t)
HANDLE(cudaGraph_t)
HANDLE(cudaGraphExec_t)
HANDLE(cudaGraphNode_t)
HANDLE(cudaGraphicsResource_t)
HANDLE(cudaLibrary_t)
HANDLE(cudaMemPool_t)
HANDLE(cudaMipmappedArray_t)
HANDLE(cudaStream_t)

NUMBERED(cudaDriverEntryPointQueryResult)
NUMBERED(cudaJitOption)
NUMBERED(cudaLibraryOption)
NUMBERED(cudaLimit)
NUMBERED(cudaMemAllocationHandleType)
NUMBERED(cudaMemAllocationType)
NUMBERED(cudaMemPoolAttr)
NUMBERED(cudaStreamCaptureMode)

OPAQUE(cudaGraphEdgeData)
OPAQUE(cudaIpcEventHandle_t)
struct cudaKernelNodeParams;
struct cudaMemAccessDesc;
struct cudaMemPoolPtrExportData;

typedef struct {
	char reserved[64];
} cudaIpcMemHandle_t; /* passed by value */

struct cudaMemLocation {
	int type, id;
};

struct cudaExtent {
	size_t width, height, depth;
};

struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};

struct cudaChannelFormatDesc {
	int x, y, z, w, f;
};

struct cudaMemPoolProps {
	int allocType, handleTypes;
	struct cudaMemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned char reserved[56];
};

struct cudaMemAllocNodeParams {
	struct cudaMemPoolProps poolProps;
	const struct cudaMemAccessDesc *accessDescs;
	size_t accessDescCount, bytesize;
	void *dptr;
};

struct cudaGraphNodeParams {
	int type, reserved0[3];
	union {
		struct cudaMemAllocNodeParams alloc;
		struct {
			void *dptr;
		} free;
		long long reserved1[29];
	};
	long long reserved2;
};

typedef struct {
	unsigned long long flags;
	cudaStream_t uploadStream;
	cudaGraphNode_t errNode_out;
	int result_out;
} cudaGraphInstantiateParams;

struct cudaExternalMemoryHandleDesc {
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
	} handle;
	unsigned long long size;
	unsigned int flags;
};

struct cudaExternalMemoryBufferDesc {
	unsigned long long offset, size;
	unsigned int flags;
};

struct cudaExternalMemoryMipmappedArrayDesc {
	unsigned long long offset;
	struct cudaChannelFormatDesc formatDesc;
	struct cudaExtent extent;
	unsigned int flags, numLevels;
};

struct cudaDeviceProp {
	char name[256];
	unsigned char before[32]; /* uuid, luid, node mask */
	size_t totalGlobalMem;	  /* followed by many more members that differ by version */
};

/* --- HIP ------------------------------------------------------------------------------------------------ */

NUMBER(hipError_t)
NUMBER(hipDevice_t)
typedef void *hipDeviceptr_t;
HANDLE(hipArray_t)
HANDLE(hipCtx_t)
HANDLE(hipEvent_t)
HANDLE(hipExternalMemory_t)
HANDLE(hipFunction_t)
HANDLE(hipGraph_t)
HANDLE(hipGraphExec_t)
HANDLE(hipGraphNode_t)
HANDLE(hipGraphicsResource_t)
HANDLE(hipMemGenericAllocationHandle_t)
HANDLE(hipMemPool_t)
HANDLE(hipMipmappedArray_t)
HANDLE(hipModule_t)
HANDLE(hipStream_t)
HANDLE(hipTextureObject_t)

NUMBER(hipDriverEntryPointQueryResult)
NUMBER(hipDriverProcAddressQueryResult)
NUMBER(hipJitOption)
NUMBER(hipMemAllocationHandleType)
NUMBER(hipMemPoolAttr)
NUMBER(hipMemcpyKind)
NUMBERED(hipLimit_t)

typedef struct dim3 {
	uint32_t x, y, z;
} dim3; /* passed by value */

OPAQUE(hipArrayMapInfo)
OPAQUE(hipMemAccessDesc)
OPAQUE(hipMemPoolPtrExportData)
OPAQUE(hipResourceDesc)
OPAQUE(hipTextureDesc)
struct hipResourceViewDesc;
typedef CUDA_ARRAY_DESCRIPTOR HIP_ARRAY_DESCRIPTOR;
typedef CUDA_ARRAY3D_DESCRIPTOR HIP_ARRAY3D_DESCRIPTOR;

typedef struct {
	char reserved[64];
} hipIpcMemHandle_t; /* passed by value */

typedef struct hipExtent {
	size_t width, height, depth;
} hipExtent;

typedef struct {
	void *ptr;
	size_t pitch, xsize, ysize;
} hipPitchedPtr;

typedef struct hipChannelFormatDesc {
	int x, y, z, w, f;
} hipChannelFormatDesc;

typedef struct {
	int type, id;
} hipMemLocation;

typedef struct {
	int allocType, handleTypes;
	hipMemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned char reserved[56];
} hipMemPoolProps;

typedef struct {
	int type, requestedHandleType;
	hipMemLocation location;
	void *win32HandleMetaData;
	unsigned char allocFlags[8];
} hipMemAllocationProp;

typedef struct {
	hipMemPoolProps poolProps;
	const hipMemAccessDesc *accessDescs;
	size_t accessDescCount, bytesize;
	void *dptr;
} hipMemAllocNodeParams;

typedef struct {
	int type, reserved0[3];
	union {
		hipMemAllocNodeParams alloc;
		struct {
			void *dptr;
		} free;
		long long reserved1[29];
	};
	long long reserved2;
} hipGraphNodeParams;

typedef struct {
	hipGraphNode_t errNode_out;
	unsigned long long flags;
	int result_out;
	hipStream_t uploadStream;
} hipGraphInstantiateParams;

typedef struct {
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
	} handle;
	unsigned long long size;
	unsigned int flags;
} hipExternalMemoryHandleDesc;

typedef struct {
	unsigned long long offset, size;
	unsigned int flags;
} hipExternalMemoryBufferDesc;

typedef struct {
	unsigned long long offset;
	hipChannelFormatDesc formatDesc;
	hipExtent extent;
	unsigned int flags, numLevels;
} hipExternalMemoryMipmappedArrayDesc;

/* Device properties: HIP 6 put a uuid, luid and node mask before the size.  The older layout kept the plain name. */
typedef struct {
	char name[256];
	size_t totalGlobalMem;
} hipDeviceProp_tR0000;

typedef struct {
	char name[256];
	unsigned char before[32];
	size_t totalGlobalMem;
} hipDeviceProp_tR0600;

/* --- HSA ------------------------------------------------------------------------------------------------ */

NUMBER(hsa_status_t)
typedef struct {
	uint64_t handle;
} hsa_amd_memory_pool_t, hsa_region_t, hsa_agent_t, hsa_amd_vmem_alloc_handle_t; /* passed by value */
OPAQUE(hsa_amd_ipc_memory_t)
typedef unsigned hsa_amd_memory_type_t; /* an enum */
OPAQUE(hsa_amd_memory_access_desc_t)
typedef struct { /* as far as it is read */
	uint32_t size;
	int type;
	void *agentBaseAddress, *hostBaseAddress;
	size_t sizeInBytes;
	void *userData;
	hsa_agent_t agentOwner;
} hsa_amd_pointer_info_t;

/* --- NCCL and RCCL -------------------------------------------------------------------------------------- */

NUMBER(ncclResult_t)
NUMBER(ncclCommMemStat_t)
HANDLE(ncclComm_t)
HANDLE(ncclWindow_t)
typedef struct {
	size_t size;
	unsigned int magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
	const char *netName;
	int splitShare, trafficClass;
	const char *commName; /* since 2.27 */
} ncclConfig_t;
typedef struct {
	char internal[128];
} ncclUniqueId; /* passed by value */

/* --- NVML ----------------------------------------------------------------------------------------------- */

NUMBER(nvmlReturn_t)
HANDLE(nvmlDevice_t)

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
	unsigned int version;
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

/* --- ROCm SMI and AMD SMI --------------------------------------------------------------------------------- */

NUMBER(rsmi_status_t)
NUMBER(amdsmi_status_t)
typedef unsigned rsmi_memory_type_t, amdsmi_memory_type_t; /* enums; 0: VRAM */
typedef void *amdsmi_processor_handle;
typedef struct {
	uint32_t vram_total, vram_used, reserved[2]; /* MiB */
} amdsmi_vram_usage_t;

#undef HANDLE
#undef OPAQUE
#undef NUMBER
#undef NUMBERED
