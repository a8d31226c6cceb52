# SPDX-License-Identifier: MIT
"""Fetches schemas and tools from elsewhere for these tests.  A test is skipped, with the reason, if its tool cannot be had."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tarfile

BUILD = os.environ.get("STORMLOG_BUILD", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build"))
KEPT = os.path.join(BUILD, "tests", "outside")  # what is fetched stays there, for each build folder


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


def from_npm(test, package, version):
    """Folder with the files of a package of npm, unpacked, not installed."""
    npm = tool(test, "npm", "npm")
    folder = os.path.join(KEPT, "%s-%s" % (os.path.basename(package), version))
    if not os.path.isdir(folder + "/package"):
        os.makedirs(folder, exist_ok=True)
        try:
            subprocess.run([npm, "pack", "--silent", "%s@%s" % (package, version)], cwd=folder, capture_output=True, timeout=120, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            test.skipTest("%s cannot be fetched from npm: %s" % (package, error))
        (archive,) = glob.glob(folder + "/*.tgz")
        with tarfile.open(archive) as files:
            files.extractall(folder)
        os.unlink(archive)
    return folder + "/package"


def validate(test, document, schema):
    try:
        import jsonschema
    except ImportError:
        test.skipTest("no jsonschema for Python: apt install python3-jsonschema")
    jsonschema.validate(document, schema)


def junit_schema(test):
    """The schema of Jenkins' xUnit plugin, which pytest tests itself against."""
    tool(test, "xmllint", "libxml2-utils")
    folder = from_pypi(test, "pytest==7.4.4", "--no-binary", "pytest")
    return glob.glob(folder + "/*/testing/example_scripts/junit-10.xsd")[0]


def sarif_schema(test):
    """The schema of SARIF 2.1.0: OASIS's own (oasis-tcs/sarif-spec) if STORMLOG_SARIF_SCHEMA names it, else the one in the authors'
    validator, which differs only in patterns for GUIDs, which we do not write."""
    path = os.environ.get("STORMLOG_SARIF_SCHEMA") or os.path.join(sarif_multitool(test), "sarif-2.1.0.json")
    with open(path) as file:
        return json.load(file)


def sarif_multitool(test):
    """Folder of the validator of SARIF's authors."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        test.skipTest("sarif-multitool-linux is for x86-64")
    return from_npm(test, "@microsoft/sarif-multitool-linux", "5.7.0")


def many_leaks(test, folder, count):
    subprocess.run([os.path.join(BUILD, "tests", "gate", "make_many_leaks"), folder, str(count)], check=True)


def speedscope_schema(test):
    """file-format-schema.json of the npm package."""
    folder = from_npm(test, "speedscope", "1.22.2")
    with open(glob.glob(folder + "/**/file-format-schema.json", recursive=True)[0]) as file:
        return json.load(file)


def perfetto_descriptor(test):
    """The published schema of traces as a serialized FileDescriptorProto, from PyPI's package."""
    import ast
    folder = from_pypi(test, "perfetto==0.59.1")
    with open(folder + "/perfetto/protos/perfetto/trace/perfetto_trace_pb2.py") as file:
        text = file.read()
    literal = text[text.index("AddSerializedFile(") + len("AddSerializedFile("):]
    return ast.literal_eval(literal[: literal.index("\n")].rstrip()[:-1])


def perfetto_messages(test):
    """The class of perfetto.protos.Trace, by whatever protobuf is installed."""
    try:
        from google.protobuf import descriptor_pool, message_factory
    except ImportError:
        test.skipTest("no protobuf for Python: apt install python3-protobuf")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(perfetto_descriptor(test))
    found = pool.FindMessageTypeByName("perfetto.protos.Trace")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(pool).GetPrototype(found)


def memory_viz(test):
    """The path of torch/cuda/_memory_viz.py, which runs without the rest of PyTorch."""
    for path in [os.environ.get("STORMLOG_MEMORY_VIZ", "")] + glob.glob("/usr/lib/python3/dist-packages/torch/cuda/_memory_viz.py"):
        if path and os.path.exists(path):
            return path
    test.skipTest("no _memory_viz.py: apt install python3-torch, or set STORMLOG_MEMORY_VIZ")
