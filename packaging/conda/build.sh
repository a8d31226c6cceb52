#!/bin/sh
# SPDX-License-Identifier: MIT
set -eu
meson setup build --prefix="$PREFIX" --libdir=lib --buildtype=release -Dtests=disabled
ninja -C build
meson install -C build --no-rebuild
cp -r python/stormlog_native python/stormlog_native.pth "$SP_DIR/"
