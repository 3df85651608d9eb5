"""What the machine is: its GPU, libraries and what is known of such a card; whether it can be used, and what it does meanwhile."""
import glob
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from session import HERE

LEAST_GLIBC = (2, 36)
# What a program says where nothing of ours can run on a GPU.
WITHOUT_A_GPU = re.compile(r"NVIDIA driver|there is no GPU|there is no cuda:|was built without CUDA|of compute capability|"
                           r"cannot be used, looked for as|the cuDNN of this machine is")
# What makers say of their cards, by a part of the name that nvidia-smi says, the longer ones first: bytes/s of the memory, and
# operations/s in float32 without and in bfloat16 with tensor cores, a multiplication and an addition being two.
CARDS = {
    "H200": (4.8e12, 67e12, 989e12),
    "H100 PCIe": (2.04e12, 51e12, 756e12),
    "H100": (3.35e12, 67e12, 989e12),
    "A100-SXM4-80GB": (2.04e12, 19.5e12, 312e12),
    "A100 80GB PCIe": (1.94e12, 19.5e12, 312e12),
    "A100": (1.56e12, 19.5e12, 312e12),
    "L40S": (0.86e12, 91.6e12, 362e12),
    "L4": (0.3e12, 30.3e12, 121e12),
    "RTX 4090": (1.01e12, 82.6e12, 165e12),
    "RTX 3090": (0.94e12, 35.6e12, 71e12),
}
# CUDA's libraries that programs load, with what says their version.
LIBRARIES = {"cuBLASLt": ("libcublasLt.so", "cublasLtGetVersion"), "cuDNN": ("libcudnn.so", "cudnnGetVersion"),
             "NCCL": ("libnccl.so", "ncclGetVersion")}
ASK_VERSION = """
import ctypes, sys
version = ctypes.c_int()
function = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
function.restype = ctypes.c_size_t
print(function(ctypes.byref(version)) or version.value)
"""


def libraries_of(programs, python):
    """Where the nvidia-* packages of this Python keep CUDA's libraries."""
    ended = programs.call(python, "-c", "import sys; print(*sys.path, sep='\\n')", cap=30)
    folders = [pathlib.Path(folder) for folder in ended.output.splitlines() if folder]
    return sorted({str(found) for folder in folders for found in folder.glob("nvidia/*/lib") if any(found.glob("*.so*"))})


def set_environment(programs, python, out):
    """Of our programs: our own libraries first, then the system's, then Python's, as a process has one of each."""
    paths = [str(HERE / "lib"), *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")), *libraries_of(programs, python)]
    programs.environment |= {"LD_LIBRARY_PATH": ":".join(paths), "XDG_CACHE_HOME": str(out / "cache")}


def library_versions(session):
    """{library: version and the files that there are of it, the one that is loaded first where the system has a say}"""
    folders = [*session.programs.environment["LD_LIBRARY_PATH"].split(":"), *sorted(glob.glob("/usr/local/cuda*/lib64"))]
    cached = session.call("/sbin/ldconfig", "-p", cap=20).output
    found = {}
    for name, (file, function) in LIBRARIES.items():
        files = [path for folder in folders for path in sorted(glob.glob(f"{folder}/{file}*"))]
        files += re.findall(rf"=> (/\S*{re.escape(file)}\S*)", cached)
        files = list(dict.fromkeys(os.path.realpath(path) for path in files if "stubs" not in path))
        version = session.call(sys.executable, "-c", ASK_VERSION, files[0], function, cap=30).output.strip() if files else None
        found[name] = {"version": version and version[-200:], "files": files[:6]}
    return found


def smi(session, *words):
    # Its own libraries, not ours.
    ended = session.call("nvidia-smi", *words, cap=30, environment=dict(os.environ))
    return ended.output.strip() if ended.code == 0 else ""


def describe(session):
    processor = next(iter(re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())), platform.machine())
    memory = next(iter(re.findall(r"MemTotal:\s*(.*)", pathlib.Path("/proc/meminfo").read_text())), None)
    machine = {"gpus": [], "processor": processor, "cores": os.cpu_count(), "memory": memory, "system": platform.platform(),
               "kernel": platform.release(), "glibc": " ".join(platform.libc_ver()), "python": platform.python_version(),
               "libraries": session.programs.environment["LD_LIBRARY_PATH"]}
    if shutil.which("nvidia-smi"):
        machine["gpus"] = smi(session, "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit", "--format=csv,noheader").splitlines()
        machine["pcie"] = smi(session, "--query-gpu=pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max",
                              "--format=csv,noheader").splitlines()
        # Begins with the versions of the driver and of CUDA.
        state = smi(session, "-q", "-d", "CLOCK,POWER,TEMPERATURE")
        machine["state"] = [re.sub(r"\s+:\s+", ": ", line.strip()) for line in state.splitlines() if " : " in line and not line.endswith("N/A")][:60]
    if session.on_gpu:
        machine["versions"] = library_versions(session)
    return machine


def old_glibc():
    """What is wrong with this machine's glibc; None where nothing is."""
    name, version = platform.libc_ver()
    if name != "glibc" or tuple(map(int, version.split(".")[:2])) >= LEAST_GLIBC:
        return None
    return f"this machine has glibc {version}; the programs need {'.'.join(map(str, LEAST_GLIBC))}, as Debian 12 and Ubuntu 24.04 have"


def preflight(session):
    """Whether a model trains on the device; with `stop`, why nothing can run."""
    wrong = old_glibc()
    if wrong:
        return {"ok": False, "stop": wrong}
    ended = session.shoal("bench", "model", HERE / "models/fashion_mnist.json", "--device", session.arguments.device, "--seconds", 0, cap=90)
    entry = {"ok": ended.code == 0} | ended.entry()
    if ended.code not in (0, None) and WITHOUT_A_GPU.search(ended.output):
        entry["stop"] = f"{session.arguments.device} cannot be used here: {ended.output.strip()[-1000:]}"
    return entry


def card(session):
    """What of CARDS is known of the device."""
    if not session.on_gpu:
        return None
    name = smi(session, f"--id={session.gpu_index}", "--query-gpu=name", "--format=csv,noheader")
    return next((figures for part, figures in CARDS.items() if part in name), None)


class Samples:
    """While it is entered, nvidia-smi says five times a second what the GPU does; then `summary` is that, empty without nvidia-smi."""
    COLUMNS = ("utilization.gpu", "clocks.sm", "power.draw", "memory.used")

    def __init__(self, session):
        self.summary = {}
        self._command = None
        if session.on_gpu and shutil.which("nvidia-smi"):
            # A line at a time, whatever it makes of a file.
            by_lines = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []
            self._command = [*by_lines, "nvidia-smi", f"--id={session.gpu_index}", f"--query-gpu=timestamp,{','.join(self.COLUMNS)}",
                             "--format=csv,noheader", "-lms", "200"]

    def __enter__(self):
        if self._command:
            self._output = tempfile.TemporaryFile("w+")
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        if self._command:
            self._process.terminate()
            try:
                self._process.wait(3)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._output.seek(0)
            self.summary = self.summarize(self._output.read())
            self._output.close()

    @classmethod
    def summarize(cls, text):
        """Of lines of comma-separated values, {column: least, median and largest}."""
        columns = {name: [] for name in cls.COLUMNS}
        for line in text.splitlines():
            values = [re.match(r"\s*([\d.]+)", value) for value in line.split(",")[1:]]
            if len(values) == len(columns) and all(values):
                for name, value in zip(columns, values):
                    columns[name].append(float(value[1]))
        return {name: {"min": min(values), "median": statistics.median(values), "max": max(values), "samples": len(values)}
                for name, values in columns.items() if values}
