"""What `cmake --install` puts in place: programs, units, man pages, completion, examples."""
import os
import re
import shutil
import subprocess

import pytest

from real_cluster import BIN, SOURCE

BUILD = BIN.parent
DROP_INS = ["tls-credentials.conf", "tls-group.conf"]
PROGRAMS = ["shoal", "shoal-coordinator", "shoal-ps", "shoal-worker"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", BUILD], check=True, capture_output=True, env={**os.environ, "DESTDIR": str(root)})
    return root


def subcommands():
    """What `shoal --help` lists."""
    said = subprocess.run([BIN / "shoal", "--help"], capture_output=True, text=True, check=True).stdout
    listed = said.split("\nSubcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\w+)", listed, re.M)


def test_everything_is_in_its_place(installed):
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    pages = PROGRAMS + [f"shoal-{word}" for word in subcommands()]
    examples = {f"usr/share/shoal/examples/{path.relative_to(SOURCE / 'examples')}" for path in (SOURCE / "examples").rglob("*") if path.is_file()}
    assert files == {*(f"usr/bin/{name}" for name in PROGRAMS), *(f"usr/share/man/man1/{page}.1" for page in pages),
                     *(f"usr/share/bash-completion/completions/{name}" for name in PROGRAMS),
                     *(f"usr/lib/systemd/system/{name}.service" for name in PROGRAMS[1:]),
                     *(f"usr/share/shoal/systemd/{name}" for name in DROP_INS),
                     *(f"etc/shoal/{name.removeprefix('shoal-')}.env" for name in PROGRAMS[1:]), "usr/share/doc/shoal/copyright", *examples}


@pytest.mark.parametrize("unit", PROGRAMS[1:])
def test_units_are_ones_that_systemd_understands(installed, tmp_path, unit):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    # The program is where it was installed, not where it will be.
    text = (installed / f"usr/lib/systemd/system/{unit}.service").read_text()
    path = tmp_path / f"{unit}.service"
    path.write_text(text.replace("ExecStart=/usr/bin/", f"ExecStart={installed}/usr/bin/"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert {"Type=notify", "SuccessExitStatus=143", "RestartPreventExitStatus=64 65 77 78", "DynamicUser=yes"} <= set(text.splitlines())
    task = unit.removeprefix("shoal-")
    assert f"EnvironmentFile=/etc/shoal/{task}.env" in text


@pytest.mark.parametrize("drop_in", DROP_INS)
@pytest.mark.parametrize("unit", PROGRAMS[1:])
def test_drop_ins_are_ones_that_systemd_understands(installed, tmp_path, unit, drop_in):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    path = tmp_path / f"{unit}.service"
    path.write_text((installed / f"usr/lib/systemd/system/{unit}.service").read_text().replace("ExecStart=/usr/bin/", f"ExecStart={installed}/usr/bin/"))
    folder = tmp_path / f"{unit}.service.d"  # systemd-analyze looks there, too
    folder.mkdir()
    (folder / drop_in).symlink_to(installed / "usr/share/shoal/systemd" / drop_in)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("unit", PROGRAMS[1:])
def test_units_expose_little(installed, tmp_path, unit):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=30", installed / f"usr/lib/systemd/system/{unit}.service"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr


def test_environment_files_are_whole(installed, tmp_path):
    """Read as systemd does; `shoal validate` finds nothing wrong in the cluster spec."""
    for name in PROGRAMS[1:]:
        path = installed / f"etc/shoal/{name.removeprefix('shoal-')}.env"
        shown = subprocess.run(["bash", "-c", f"set -a; . {path}; printf %s \"$TF_CONFIG\""], capture_output=True, text=True, check=True).stdout
        spec = tmp_path / f"{name}.json"
        spec.write_text(shown)
        done = subprocess.run([BIN / "shoal", "validate", "--cluster_spec", spec, "--job", SOURCE / "examples/fashion_mnist/job.json"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_man_pages_say_what_the_help_says(installed):
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    for command in (["shoal-worker"], ["shoal", "train"]):
        page = installed / "usr/share/man/man1" / ("-".join(command) + ".1")
        done = subprocess.run(["man", "--warnings", "--local-file", page], capture_output=True, text=True, check=True,
                              env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8"})
        assert done.stderr == ""
        shown = [line.strip() for line in done.stdout.splitlines()]
        said = subprocess.run([BIN / command[0], *command[1:], "--help"], capture_output=True, text=True, check=True).stdout
        for line in said.splitlines()[1:]:
            assert line.strip() in shown, line


@pytest.mark.parametrize("words, expected", [
    (["shoal", "tr"], ["train"]),
    (["shoal", "train", "--max"], ["--max_restarts"]),
    (["shoal", "checkpoint", ""], ["list", "show", "verify", "now"]),
    (["shoal-worker", "--dev"], ["--device"]),
    (["shoal-worker", "--device", ""], ["auto", "cpu", "reference", "cuda:N"]),
    (["shoal-ps", "--log_format", "j"], ["json"]),
])
def test_completion(installed, words, expected):
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""
        source {installed}/usr/share/bash-completion/completions/shoal
        COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _shoal
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
    assert done.stdout.split() == expected, done.stderr
