#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fetch the vendors' headers into a folder and compare the rows of agent/hooks with them: CUDA 11, 12, 13 and NVML from PyPI,
HIP, HSA and RCCL from Debian.  STORMLOG_REAL=1 adds NCCL (350 MB) and compares since.txt too.  Exits 77 where none can be had.

check_packages.py FOLDER [--write]: --write makes since.txt anew
"""
import os
import shutil
import subprocess
import sys
import zipfile

PYPI = ["nvidia-cuda-runtime-cu11==11.8.89", "nvidia-cuda-runtime-cu12==12.0.146", "nvidia-cuda-runtime-cu12==12.4.127",
        "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-runtime", "nvidia-nvml-dev-cu12"]
LARGE = ["nvidia-nccl-cu12"]
DEBIAN = {"bookworm": ["libamdhip64-dev", "libhsa-runtime-dev", "librocm-smi-dev"],
          "trixie": ["libamdhip64-dev", "libhsa-runtime-dev", "librccl-dev", "librocm-smi-dev", "libamd-smi-dev"],
          "sid": ["libamdhip64-dev", "libhsa-runtime-dev"]}
MIRROR = os.environ.get("STORMLOG_DEBIAN_MIRROR", "http://deb.debian.org/debian")


def run(*command, **more):
    try:
        return subprocess.run(command, capture_output=True, timeout=600, **more).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def from_pypi(package, folder):
    if not run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder, package):
        return False
    for wheel in os.listdir(folder):
        with zipfile.ZipFile(os.path.join(folder, wheel)) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if "/include/" in name or "libcudart" in name])
        os.remove(os.path.join(folder, wheel))
    return True


def from_debian(suite, folder):
    """Run apt on a state folder of its own: the system is not changed, nothing is installed."""
    state = os.path.join(folder, "apt")
    for name in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(state, name))
    open(os.path.join(state, "status"), "w").close()
    with open(os.path.join(state, "sources"), "w") as out:
        out.write(f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {MIRROR} {suite} main\n")
    options = [word for name, value in {
        "Dir::State": state, "Dir::State::lists": state + "/lists", "Dir::State::status": state + "/status",
        "Dir::Cache": state + "/cache", "Dir::Etc::SourceList": state + "/sources", "Dir::Etc::SourceParts": "-",
        "Dir::Etc::Parts": "-", "APT::Sandbox::User": "root", "APT::Architecture": "amd64"}.items() for word in ("-o", f"{name}={value}")]
    if not run("apt-get", "-qq", *options, "update") or not run("apt-get", "-qq", *options, "download", *DEBIAN[suite], cwd=folder):
        return False
    debs = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".deb")]
    got = all([run("dpkg-deb", "-x", deb, folder) for deb in debs])
    shutil.rmtree(state)
    return got


def have(name, folder, fetch):
    """The folder of this package or suite; None where it cannot be had."""
    target = os.path.join(folder, name)
    if not os.path.isdir(target):
        shutil.rmtree(target + ".part", ignore_errors=True)
        os.mkdir(target + ".part")
        if not fetch(name, target + ".part"):
            print("not fetched:", name)
            return None
        os.rename(target + ".part", target)
    return target


def main():
    folder = os.path.abspath(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    got = [have(name, folder, from_pypi) for name in PYPI + (LARGE if os.environ.get("STORMLOG_REAL") == "1" else [])]
    got += [have(suite, folder, from_debian) for suite in DEBIAN]
    if not any(got):
        print("neither PyPI nor Debian's mirror can be reached")
        return 77
    check = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_rows.py")
    globs = [os.path.join(target, part) for target in got if target for part in ("nvidia/*/include", "usr/include")]
    # NCCL's package is large and optional: without it NCCL's rows have no version.
    since = ["--since", *sys.argv[2:]] if all(got) and os.environ.get("STORMLOG_REAL") == "1" else []
    return subprocess.run([sys.executable, check, *since, *globs]).returncode


if __name__ == "__main__":
    sys.exit(main())
