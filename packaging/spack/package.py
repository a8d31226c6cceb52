# SPDX-License-Identifier: MIT
# Spack 1.0 or later.  Link it to packages/stormlog/package.py of a repository of yours, then: spack install stormlog
import os

from spack_repo.builtin.build_systems.meson import MesonPackage

from spack.package import *


class Stormlog(MesonPackage):
    """Records every GPU memory call of a program, and says where the memory went."""

    # The clone that this file lies in.  Of a copy, or of a tarball, the source tree is built by: spack dev-build stormlog@main
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))

    license("MIT")
    version("main", branch="main")

    variant("report", default=False, description="The interactive report.html (npm fetches modules while building)")
    variant("pictures", default=True, description="Pictures of the time line (cairo)")
    variant("top", default=True, description="stormlog-top (ncurses)")
    variant("push", default=True, description="stormlog-analyze push and webhooks (curl)")
    variant("exporter", default=False, description="stormlog-exporter for Prometheus (libmicrohttpd)")
    variant("server", default=False, description="stormlog-server (libmicrohttpd, libseccomp)")

    depends_on("c", type="build")
    depends_on("meson@1:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("patchelf", type="build")
    depends_on("node-js@18:", type="build", when="+report")
    depends_on("npm", type="build", when="+report")
    depends_on("zstd libs=static,shared")
    depends_on("msgpack-c")
    depends_on("elfutils")
    depends_on("sqlite")
    depends_on("zlib-api")
    depends_on("cairo", when="+pictures")
    depends_on("ncurses", when="+top")
    depends_on("curl", when="+push")
    depends_on("libmicrohttpd", when="+exporter")
    depends_on("libmicrohttpd", when="+server")
    depends_on("libseccomp", when="+server")
    depends_on("libunwind libs=shared")

    def meson_args(self):
        names = ("report", "pictures", "top", "push", "exporter", "server")
        return ["-Dtests=disabled", "-Dattach=disabled"] + [
            "-D%s=%s" % (name, "enabled" if "+" + name in self.spec else "disabled") for name in names]

    @run_after("install")
    def leave_the_agent_without_rpath(self):
        # The compiler's wrapper gives one to all that it links; programs that are recorded would search Spack's folders.
        which("patchelf", required=True)("--remove-rpath", os.path.join(self.prefix.lib, "libstormlog_preload.so"))

    @run_after("install")
    def bring_libunwind(self):
        # The agent opens it beside itself, since programs that it records have no path to Spack's.
        os.symlink(os.path.join(self.spec["libunwind"].prefix.lib, "libunwind.so.8"), os.path.join(self.prefix.lib, "libunwind.so.8"))

    # PATH is Spack's own doing.  LD_PRELOAD is never set for a whole session: stormlog-run does it for one command.
