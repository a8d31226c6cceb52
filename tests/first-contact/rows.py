# SPDX-License-Identifier: MIT
"""How each command of a page is given small inputs.  A new command or screen of a page needs a row here, or the test fails."""
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclass
class Row:
    """A row is for commands, or with run or file for a block that has none."""
    page: str  # the end of its path; "" is any
    what: str  # how the command or the block begins
    put: tuple = ()  # functions that lay inputs into the folder
    instead: dict = field(default_factory=dict)  # {words of the page: words here}
    run: tuple = ()  # commands that make this screen: it shows another program than the page's commands
    file: str = ""  # the block is the text of this file
    exact: bool = False  # the input is the page's: the output has its figures too; else it has its words
    status: int = 0  # 1: a verdict such as "does not fit"
    asks: str = ""  # lines for a server
    says: tuple = ()  # words of the output, the last one last
    environment: dict = field(default_factory=dict)


def program(name, to="train.py"):
    return lambda at: shutil.copy(HERE / "programs" / name, at.folder / to)


def recording(path, *names):
    """A recording of this tree, in folders of these names."""
    def put(at):
        for name in names or ("traces",):
            shutil.rmtree(at.folder / name, ignore_errors=True)
            shutil.copytree(ROOT / path, at.folder / name)
    return put


def snapshot(at):
    if not (at.place / "snapshot.pickle").exists():
        program("snapshot.py", "make.py")(at)
        at.sh("stormlog-run -q --dry=h200 --allow-writes . -o made -- python make.py")
        shutil.move(at.folder / "snapshot.pickle", at.place)
    shutil.copy(at.place / "snapshot.pickle", at.folder)


def engine(at):
    """What has vLLM's names, and is up."""
    shutil.copytree(ROOT / "tests/dry/engine", at.folder, dirs_exist_ok=True)
    stand_in("vllm", 'python serve.py 4096 eager && echo "Application startup complete." && sleep 60\n')(at)


def stand_in(name, script):
    """A program that this machine lacks: what it would do for the command."""
    def put(at):
        path = at.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
    return put


def neighbour(at):
    other = subprocess.Popen([at.python, HERE / "programs/neighbour.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**at.environment, **at.card, **CARD})
    at.cleanup(other.wait)
    at.cleanup(other.stdin.close)
    other.stdout.readline()
    other.stdout.close()


def not_installed(at):
    at.sh("pip uninstall -q -y stormlog-native stormlog-native-dry")


def upgraded(at):
    """Two environments with releases of a package, a line of which holds more."""
    for name, version, mib in ("last-week", "4.37.2", 23400), ("now", "4.46.3", 23500):
        subprocess.run([at.python, "-m", "venv", "--without-pip", at.folder / name], check=True)
        site, = (at.folder / name).glob("lib/python*/site-packages")
        for package in "transformers", "tokenizers":
            (site / f"{package}-{version}.dist-info").mkdir()
            (site / f"{package}-{version}.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        (site / "transformers.py").write_text((HERE / "programs/loss.py").read_text().replace("MIB", str(mib)))
    (at.folder / "train.py").write_text("import transformers\ntransformers.forward()\n")


def forget(at):
    shutil.rmtree(at.folder / "traces", ignore_errors=True)


CARD = {"SIM_VRAM": "4G", "SIM_DEVICES": "1"}
SRUN = stand_in("srun", 'for rank in 0 1; do SLURM_PROCID=$rank SLURM_NTASKS=2 "$@" || exit; done\n')
JOB = {"SLURM_JOB_ID": "4711"}
ASK = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in (
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
    {"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}))
TOOLS = ("list_runs", "answer", "who_held", "leaks", "out_of_memory", "hidden", "compare", "would_it_fit", "entries")
SERVED = {"put": (recording("tests/real-gpu/cases/graphed_ranker/alone"),), "instead": {"/path/to/runs": "traces", "/path/to/venv/bin/": ""}, "asks": ASK, "says": TOOLS}

# The first row that fits is taken.
ROWS = [
    # README
    Row("README.md", "stormlog-run --dry=4090 --against", (upgraded,), {"-- python": "-- now/bin/python"}),
    Row("README.md", "stormlog-run --check -- CMD", (program("cuda.py"),), {"CMD": "python train.py"}, says=("libcudart",)),
    Row("README.md", "LD_PRELOAD=", (program("cuda.py"), forget), {"/path/to": "$AGENT"}),
    Row("README.md", "stormlog-analyze fit --capacity 350M,400M traces", (recording("tests/golden/gpu/torch-fit"),), {"400M": "1000M"}, status=1),
    Row("README.md", "train.py  pid", (program("../../../doc/examples/train.py"), forget), exact=True, environment={"SIM_VRAM": "8G"}, run=(
        "stormlog-run -q -o traces -- sh -c '$EXAMPLES/solver; exec python train.py' || [ $? = 1 ]", "stormlog-analyze traces")),
    # doc/cases
    Row("out-of-memory.md", "stormlog-analyze fit --capacity 24G,80G traces/", status=1),
    Row("out-of-memory.md", "stormlog-analyze traces/", (recording("tests/real-gpu/cases/depth_validation/shared-device"),), exact=True),
    Row("out-of-memory.md", "stormlog-analyze diff before/ after/", (recording("tests/real-gpu/cases/depth_validation/shared-device", "before", "after"),)),
    Row("server-start.md", "stormlog-run --dry=4090 -- vllm serve", (engine,)),
    Row("server-start.md", "stormlog-analyze check --dry traces", status=1),  # after the one that does not start
    Row("server-card.md", "stormlog-analyze server.log", (program("train.log", "server.log"),)),
    Row("server-start.md", "stormlog-analyze traces/"),
    Row("largest-batch.md", "stormlog-run --dry=t4,4090,a100", (program("batch.py"),)),
    Row("largest-batch.md", "FITS   the largest batch", (forget,), run=("stormlog-run -q --dry=t4 --largest batch=8..24 -- python train.py --batch {batch}",)),
    Row("fitted-before.md", "stormlog-run --dry=4090 --against", (upgraded,), {"-- python": "-- now/bin/python"}),
    Row("fitted-before.md", "MAY FIT", run=("stormlog-run -q --dry=4090 --against last-week/bin/python -- now/bin/python train.py",)),
    Row("server-start.md", "DOES NOT START", (engine, forget), run=("stormlog-run -q --dry=4090 -o traces -- python serve.py 131072 eager || [ $? = 1 ]", "stormlog-analyze traces")),
    Row("server-start.md", "FITS   vLLM", (engine, forget), run=("stormlog-run -q --dry=4090 -o traces -- vllm serve", "stormlog-analyze traces")),
    Row("server-card.md", "stormlog-run --python-pools -- vllm serve MODEL", (program("cuda.py", "serve.py"), stand_in("vllm", "exec python serve.py\n"))),
    Row("server-card.md", "stormlog-analyze traces/", (recording("tests/real-gpu/cases/graphed_ranker/alone"),)),
    Row("server-card.md", "3.35  GiB", run=("stormlog-analyze traces/",), exact=True),
    Row("two-programs.md", "stormlog-run -- python train.py", (program("cuda.py"), neighbour), environment=CARD),
    Row("two-programs.md", "stormlog-analyze traces/", exact=True),
    Row("two-programs.md", "STORMLOG_RUN_ID=night", (program("cuda.py"),), {"...": "python train.py"}),
    Row("two-programs.md", "stormlog-analyze watch", instead={"watch": "watch --duration 1 traces"}, status=1),
    Row("kubernetes.md", "stormlog-run -o /traces", (program("cuda.py"),), {"/traces": "claim"}),
    Row("kubernetes.md", "kubectl cp reader:/traces traces", (stand_in("kubectl", 'exec cp -r claim "$3"\n'),)),
    Row("github-actions.md", "[check]", file=".stormlog.ini"),
    Row("github-actions.md", "pip install torch", (not_installed,), instead={"RELEASE": "WHEELS"}),
    Row("github-actions.md", "stormlog-run --dry=h200 --gate", (program("dry.py"),)),
    Row("slurm.md", "stormlog-run -o traces/%j", (program("cuda.py"),), environment=JOB),
    Row("slurm.md", "stormlog-run srun", (program("cuda.py"), SRUN)),
    Row("slurm.md", "srun stormlog-run", (program("cuda.py"), SRUN)),
    Row("slurm.md", "#!/bin/sh\n#SBATCH", (program("cuda.py"), SRUN, forget), environment=JOB),
    Row("slurm.md", "stormlog-analyze traces/4711"),
    Row("slurm.md", "#!/bin/sh\n# /etc/slurm/epilog.d", (stand_in("su", 'shift 2\nshell=$1\nshift\nexec "$shell" "$@"\n'),),
        environment={**JOB, "SLURM_JOB_USER": "root", "SLURM_JOB_WORK_DIR": "."}),
    # doc/dry-run.md
    Row("dry-run.md", "stormlog-run --dry=h200 -- python train.py", (program("dry.py"),), {"train.py": "train.py --leak"}),
    Row("dry-run.md", "like = l4", file="card", run=("stormlog-run -q --dry=card -o carded -- python train.py",)),
    # doc/assistant.md
    Row("assistant.md", "pip install 'mcp>=2'"),
    Row("assistant.md", "python -m stormlog_native mcp", **SERVED),
    Row("assistant.md", "/path/to/venv/bin/python -m stormlog_native mcp", **SERVED),
    # any page
    Row("", "stormlog-analyze snapshot.pickle", (snapshot,)),
    Row("", "stormlog-analyze job.log", (program("train.log", "job.log"),)),
    Row("", "stormlog-run --dry", (program("dry.py"), forget)),
    Row("", "stormlog-run ", (program("cuda.py"), forget)),
    Row("", "stormlog-analyze "),
]
