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


def speedscope_schema(test):
    """file-format-schema.json of the npm package."""
    npm = tool(test, "npm", "npm")
    folder = os.path.join(KEPT, "speedscope")
    if not glob.glob(folder + "/package"):
        os.makedirs(folder, exist_ok=True)
        try:
            subprocess.run([npm, "pack", "--silent", "speedscope@1.22.2"], cwd=folder, capture_output=True, timeout=60, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            test.skipTest("speedscope cannot be fetched from npm: %s" % error)
        with tarfile.open(glob.glob(folder + "/*.tgz")[0]) as archive:
            archive.extractall(folder)
    with open(glob.glob(folder + "/package/**/file-format-schema.json", recursive=True)[0]) as file:
        return json.load(file)


def perfetto_messages(test):
    """The class of perfetto.protos.Trace, from the descriptor in PyPI's package by whatever protobuf is installed."""
    try:
        from google.protobuf import descriptor_pool, message_factory
    except ImportError:
        test.skipTest("no protobuf for Python: apt install python3-protobuf")
    import ast
    folder = from_pypi(test, "perfetto==0.59.1")
    with open(folder + "/perfetto/protos/perfetto/trace/perfetto_trace_pb2.py") as file:
        text = file.read()
    literal = text[text.index("AddSerializedFile(") + len("AddSerializedFile("):]
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(ast.literal_eval(literal[: literal.index("\n")].rstrip()[:-1]))
    found = pool.FindMessageTypeByName("perfetto.protos.Trace")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(pool).GetPrototype(found)


def memory_viz(test):
    """torch/cuda/_memory_viz.py, which runs alone."""
    for path in [os.environ.get("STORMLOG_MEMORY_VIZ", "")] + glob.glob("/usr/lib/python3/dist-packages/torch/cuda/_memory_viz.py"):
        if path and os.path.exists(path):
            return path
    test.skipTest("no _memory_viz.py: apt install python3-torch, or set STORMLOG_MEMORY_VIZ")
