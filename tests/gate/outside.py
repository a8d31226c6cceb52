# SPDX-License-Identifier: MIT
"""What these tests need from elsewhere: schemas and tools that are not ours to keep.  What cannot be had skips, and says why."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tarfile

BUILD = os.environ.get("STORMLOG_BUILD", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build"))
KEPT = os.path.join(BUILD, "tests", "outside")  # fetched once a build folder


def tool(test, name, package):
    """Path of a program, or the test is skipped."""
    found = shutil.which(name)
    if not found:
        test.skipTest("no %s: apt install %s" % (name, package))
    return found


def from_pypi(test, requirement, *options):
    """Folder with the files of a package of PyPI, unpacked, not installed."""
    folder = os.path.join(KEPT, requirement)
    if not glob.glob(folder + "/*"):
        os.makedirs(folder, exist_ok=True)
        try:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, *options, requirement],
                           capture_output=True, text=True, timeout=60, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            shutil.rmtree(folder)
            test.skipTest("%s cannot be fetched from PyPI: %s" % (requirement, str(error)[:200]))
    for name in glob.glob(folder + "/*.tar.gz"):
        with tarfile.open(name) as archive:
            archive.extractall(folder)
    for name in glob.glob(folder + "/*.whl"):
        shutil.unpack_archive(name, folder, "zip")
    return folder


def junit_schema(test):
    """The schema of Jenkins' xUnit plugin, which pytest tests itself against."""
    tool(test, "xmllint", "libxml2-utils")
    folder = from_pypi(test, "pytest==7.4.4", "--no-binary", "pytest")
    return glob.glob(folder + "/*/testing/example_scripts/junit-10.xsd")[0]


def sarif_schema(test):
    """jsonschema and the OASIS schema; no registry has it, so a path is asked for."""
    path = os.environ.get("STORMLOG_SARIF_SCHEMA")
    if not path:
        test.skipTest("STORMLOG_SARIF_SCHEMA is not set: sarif-schema-2.1.0.json of oasis-tcs/sarif-spec")
    import jsonschema
    with open(path) as file:
        return jsonschema, json.load(file)


def many_leaks(test, folder, count):
    subprocess.run([os.path.join(BUILD, "tests", "gate", "make_many_leaks"), folder, str(count)], check=True)
