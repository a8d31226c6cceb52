#!/bin/sh
# SPDX-License-Identifier: MIT
set -eu
meson setup build --prefix="$PREFIX" --libdir=lib --buildtype=release -Dtests=disabled -Dreport=enabled -Dpictures=enabled \
    -Dtop=enabled -Dpush=enabled -Dexporter=enabled -Dserver=disabled -Dattach=disabled
ninja -C build
meson install -C build --no-rebuild
# conda's compilers give an RPATH to all that they link; programs that are recorded would search this prefix.
patchelf --remove-rpath "$PREFIX/lib/libstormlog_preload.so"
cp -r python/stormlog_native python/stormlog_native.pth python/stormlog_trace.py "$SP_DIR/"
