#!/bin/sh
# SPDX-License-Identifier: MIT
# The whole of the hooks cross-built for aarch64, and the assembly of its dlsym run under qemu.
set -e
source=$1
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
	command -v $tool >/dev/null || { echo "no $tool here"; exit 77; }
done
echo "#include <stdio.h>" | aarch64-linux-gnu-gcc -E -o /dev/null - 2>/dev/null || { echo "no C library for aarch64 here"; exit 77; }
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
flags="-std=gnu11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers -I$source"
for file in "$source"/agent/hooks/*.c "$source"/agent/symbols/*.c; do
	aarch64-linux-gnu-gcc $flags -fPIC -fvisibility=hidden -ftls-model=initial-exec -c "$file" -o "$build/object.o"
done
aarch64-linux-gnu-gcc $flags "$source/tests/agent/hooks/test_lookup_asm.c" "$source/agent/hooks/lookup_aarch64.S" -o "$build/test"
qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/test"
