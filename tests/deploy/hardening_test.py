"""What the programs are built with, read from the programs: that they are as hard to abuse as those of Debian's own packages."""
import re
import subprocess

import pytest

from real_cluster import BIN, SOURCE

PROGRAMS = ["shoal", "shoal-coordinator", "shoal-ps", "shoal-worker"]


def readelf(option, program):
    return subprocess.run(["readelf", "--wide", option, BIN / program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_libraries_are_looked_for_in_folders_of_the_system_alone(program, tmp_path):
    (tmp_path / "libdnnl.so.2").write_text("of whoever may write here")
    said = subprocess.run([BIN / program, "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")
    for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", readelf("--dynamic", program)):
        assert all(folder.startswith("/usr/lib/") for folder in path.split(":")), path


@pytest.mark.parametrize("program", PROGRAMS)
def test_constants_cannot_be_written_after_start(program):
    headers = readelf("--program-headers", program)
    assert "Elf file type is DYN (Position-Independent Executable file)" in headers
    assert "GNU_RELRO" in headers
    assert re.search(r"GNU_STACK .* RW +0x", headers), "the stack can be executed"
    assert re.search(r"\(FLAGS_1\).*\bNOW\b", readelf("--dynamic", program)), "functions are looked up when they are first called"


@pytest.mark.parametrize("program", PROGRAMS)
def test_overflows_are_found(program):
    imported = readelf("--dyn-syms", program)
    assert "__stack_chk_fail" in imported, "built without -fstack-protector-strong"
    assert re.search(r"__\w+_chk@GLIBC", imported), "built without -D_FORTIFY_SOURCE"


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_program_says_where_it_was_built(program):
    """So each folder gives the same programs; the lane `reproducible` compares all of the package."""
    content = (BIN / program).read_bytes()
    assert b"common/rpc/message.cc" in content, "a failed check names its file"
    for folder in (SOURCE, BIN.parent):
        assert str(folder).encode() not in content, folder
    assert re.findall(rb"(?<![.])\.\./[a-z][\x21-\x7e]*", content) == []
