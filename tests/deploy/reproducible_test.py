"""The package of one commit is always the same, bit for bit: built in two folders, as by two people. A lane of scripts/check-lanes.

The second build has no cache, so what ccache has kept is compared with what the compiler makes now.
"""
import os
import re
import shutil
import subprocess

import pytest

from debian_root import SOURCE, run
from package_difference import differences, members_of

FOLDER = SOURCE / "build/reproducible"
FIRST = {"umask": "022", "folder": FOLDER / "one", "build": "build/release", "TZ": "UTC", "LC_ALL": "C"}
SECOND = {"umask": "027", "folder": FOLDER / "another/deeper", "build": "elsewhere", "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8",
          "COLUMNS": "60", "CCACHE_DISABLE": "1"}

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed (package dpkg)")


def build(umask, folder, build, **variables):
    """The package, built in a copy of the files that git knows."""
    for name in run("git", "-C", SOURCE, "ls-files", "-z").split("\0")[:-1]:
        if not (SOURCE / name).is_file():  # one that is about to be removed
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, folder / name)
        (folder / name).chmod((SOURCE / name).stat().st_mode & 0o777 & ~int(umask, 8))
    script = """
        umask "$0"
        cmake --preset release -B "$1" -D BUILD_TESTING=OFF
        cmake --build "$1" --parallel "$(nproc)" --target installed
        cpack --config "$1/CPackConfig.cmake" """
    run("bash", "-euc", script, umask, folder / build, cwd=folder, env={**os.environ, **variables})
    package, = (folder / build).glob("shoal_*.deb")
    return package


def sections_of(program):
    """{name: bytes} of an ELF file."""
    headers = subprocess.run(["readelf", "--wide", "--section-headers", program], check=True, capture_output=True, text=True).stdout
    content = program.read_bytes()
    rows = re.findall(r"^ *\[ *\d+\] (\S+) +(?!NOBITS)\S+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", headers, re.M)
    return {name: content[int(begin, 16):int(begin, 16) + int(size, 16)] for name, begin, size in rows}


def show_sections(first, second):
    """Prints the first bytes that differ in each section of each program: names of files, numbers or code say most about the reason."""
    for path in sorted((first.parent / "bin").iterdir()):
        one, other = sections_of(path), sections_of(second.parent / "bin" / path.name)
        for name in sorted({*one, *other}):
            a, b = one.get(name, b""), other.get(name, b"")
            if a != b:
                at = len(os.path.commonprefix([a, b]))
                print(f"{path.name}: {name} differs from byte {at} on:\n  {a[at:at + 100]!r}\n  {b[at:at + 100]!r}")


def test_the_same_commit_gives_the_same_package():
    shutil.rmtree(FOLDER, ignore_errors=True)
    first, second = build(**FIRST), build(**SECOND)
    found = differences(first, second)
    if found:
        show_sections(first, second)
    assert found == [], f"compare {first} and {second}"
    of_the_commit = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", SOURCE, "log", "-1", "--format=%ct")
    assert {member["time"] for member in members_of(first, "--fsys-tarfile").values()} == {int(of_the_commit)}
    shutil.rmtree(FOLDER)
