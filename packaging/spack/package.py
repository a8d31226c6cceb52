# SPDX-License-Identifier: MIT
# Copy it to packages/stormlog/package.py of a repository of yours, then in the source tree: spack dev-build stormlog@main
from spack.package import *


class Stormlog(MesonPackage):
    """Records every GPU memory call of a program, and says where the memory went."""

    license("MIT")
    version("main")

    variant("report", default=False, description="The interactive report.html (npm fetches modules while building)")
    variant("pictures", default=True, description="Pictures of the time line (cairo)")

    depends_on("c", type="build")
    depends_on("meson@1:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("node-js@18:", type="build", when="+report")
    depends_on("npm", type="build", when="+report")
    depends_on("zstd libs=static,shared")
    depends_on("msgpack-c")
    depends_on("elfutils")
    depends_on("sqlite")
    depends_on("zlib-api")
    depends_on("cairo", when="+pictures")
    depends_on("libunwind+pic")

    def meson_args(self):
        def feature(name):
            return "-D%s=%s" % (name, "enabled" if "+" + name in self.spec else "disabled")
        return ["-Dtests=disabled", feature("report"), feature("pictures")]

    def setup_run_environment(self, env):
        # PATH is Spack's own doing.  LD_PRELOAD is never set for a whole session: stormlog-run does it for one command.
        pass
