#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check_pjrt.py PYTHON: compares agent/hooks/pjrt_abi.h, pjrt.def and pjrt.c with pjrt_c_api.h of the plugin that PYTHON has installed."""
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MEMBERS = {  # our struct: (the plugin's struct, {our member: its member})
    "from_host": ("PJRT_Client_BufferFromHostBuffer_Args", {"type": "type", "dims": "dims", "num_dims": "num_dims", "buffer": "buffer"}),
    "execute": ("PJRT_LoadedExecutable_Execute_Args", {"executable": "executable", "argument_lists": "argument_lists",
                                                       "num_devices": "num_devices", "num_args": "num_args", "output_lists": "output_lists"}),
    "copy": ("PJRT_Buffer_CopyToDevice_Args", {"copy": "dst_buffer"}),
    "retrieve": ("PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args", {"buffer": "buffer_out"}),
    "uninitialized": ("PJRT_Client_CreateUninitializedBuffer_Args", {"buffer": "buffer"}),
    "buffer": ("PJRT_Buffer_Destroy_Args", {"buffer": "buffer"}),
    "loaded": ("PJRT_LoadedExecutable_Destroy_Args", {"executable": "executable"}),
    "compile": ("PJRT_Client_Compile_Args", {"executable": "executable"}),
    "deserialize": ("PJRT_Executable_DeserializeAndLoad_Args", {"executable": "loaded_executable"}),
    "number": ("PJRT_Buffer_OnDeviceSizeInBytes_Args", {"of": "buffer", "bytes": "on_device_size_in_bytes"}),
    "range": ("PJRT_Buffer_Dimensions_Args", {"of": "buffer", "items": "dims", "count": "num_dims"}),
    "error": ("PJRT_Error_Destroy_Args", {"error": "error"}),
    "compiled": ("PJRT_Executable_GetCompiledMemoryStats_Args",
                 {"of": "executable", "code": "generated_code_size_in_bytes", "arguments": "argument_size_in_bytes",
                  "outputs": "output_size_in_bytes", "aliases": "alias_size_in_bytes", "temporaries": "temp_size_in_bytes",
                  "peak": "peak_memory_in_bytes"}),
    "memory": ("PJRT_Device_MemoryStats_Args", {"of": "device", "in_use": "bytes_in_use", "pool.bytes": "pool_bytes",
                                                "pool.set": "pool_bytes_is_set"}),
}
ASKED = {"ERROR_DESTROY": "PJRT_Error_Destroy", "DEVICE_LOCAL_HARDWARE_ID": "PJRT_Device_LocalHardwareId",
         "DEVICE_MEMORY_STATS": "PJRT_Device_MemoryStats", "EXECUTABLE_DESTROY": "PJRT_Executable_Destroy",
         "EXECUTABLE_NAME": "PJRT_Executable_Name", "EXECUTABLE_NUM_OUTPUTS": "PJRT_Executable_NumOutputs",
         "LOADED_EXECUTABLE_GET_EXECUTABLE": "PJRT_LoadedExecutable_GetExecutable", "BUFFER_ELEMENT_TYPE": "PJRT_Buffer_ElementType",
         "BUFFER_DIMENSIONS": "PJRT_Buffer_Dimensions", "BUFFER_ON_DEVICE_SIZE": "PJRT_Buffer_OnDeviceSizeInBytes",
         "BUFFER_DEVICE": "PJRT_Buffer_Device", "BUFFER_IS_DELETED": "PJRT_Buffer_IsDeleted", "BUFFER_IS_ON_CPU": "PJRT_Buffer_IsOnCpu",
         "EXECUTABLE_COMPILED_MEMORY_STATS": "PJRT_Executable_GetCompiledMemoryStats"}


def main():
    paths = subprocess.run([sys.argv[1], "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], capture_output=True, text=True,
                           check=True).stdout.strip()
    with open(os.path.join(ROOT, "agent/hooks/pjrt.def")) as file:
        slots = dict(re.findall(r"^SLOT\(\w+, (\d+), (\w+)", file.read(), re.M))
    with open(os.path.join(ROOT, "agent/hooks/pjrt.c")) as file:
        text = file.read()
    slots.update({re.search(r"\b%s = (\d+)" % ours, text)[1]: theirs for ours, theirs in ASKED.items()})
    lines = ["_Static_assert(offsetof(PJRT_Api, %s) == 40 + 8 * %s, \"%s\");" % (name, number, name) for number, name in slots.items()]
    for ours, (theirs, members) in MEMBERS.items():
        lines += ["_Static_assert(offsetof(struct sl_pjrt_%s, %s) == offsetof(%s, %s), \"%s.%s\");" % (ours, mine, theirs, its, theirs, its)
                  for mine, its in members.items()]
    source = '#include "pjrt_c_api.h"\n#include "agent/hooks/pjrt_abi.h"\n' + "\n".join(lines)
    done = subprocess.run(["cc", "-x", "c", "-fsyntax-only", "-I", ROOT, "-I", paths + "/xla_plugins/xla_cpu_pjrt/include", "-"], input=source,
                          text=True, capture_output=True)
    print("%d places hold" % len(lines) if not done.returncode else done.stderr)
    return done.returncode


sys.exit(main())
