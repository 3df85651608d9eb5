"""Every file that must repeat the version names the one of CMakeLists.txt; scripts/set-version changes them all."""
import re
import shutil
import subprocess

from version import SOURCE, VERSION

# As images, packages and messages name it: shoal-example:0.1.0, shoal_0.1.0_amd64.deb, Shoal 0.1.0.
NAMED = re.compile(r"\b[Ss]hoal(?:-[a-z-]+)?[:_ ](\d+\.\d+\.\d+)")
# Figures of an older version, and an example of two versions.
OTHERS = {"docs/benchmarks.md", "docs/running-on-several-machines.md"}


def versions_named(source):
    """{path: versions} of the files in deploy/ and docs/ that name one."""
    found = {}
    for folder in ("deploy", "docs"):
        for path in sorted((source / folder).rglob("*")):
            name = str(path.relative_to(source))
            if path.is_file() and path.suffix not in (".png", ".svg") and name not in OTHERS:
                if versions := set(NAMED.findall(path.read_text())):
                    found[name] = versions
    return found


def test_every_file_names_the_version_of_the_build():
    found = versions_named(SOURCE)
    assert len(found) > 5
    assert {name: versions for name, versions in found.items() if versions != {VERSION}} == {}


def test_set_version_changes_every_file(tmp_path):
    for name in ("deploy", "docs", "scripts", "CMakeLists.txt"):
        copy = shutil.copytree if (SOURCE / name).is_dir() else shutil.copy
        copy(SOURCE / name, tmp_path / name)
    subprocess.run([tmp_path / "scripts" / "set-version", "7.8.9"], check=True)
    assert set.union(*versions_named(tmp_path).values()) == {"7.8.9"}
    assert "project(shoal VERSION 7.8.9 " in (tmp_path / "CMakeLists.txt").read_text()


def test_set_version_refuses_what_is_no_version(tmp_path):
    (tmp_path / "scripts").mkdir()
    shutil.copy(SOURCE / "scripts" / "set-version", tmp_path / "scripts")
    assert subprocess.run([tmp_path / "scripts" / "set-version", "next"], capture_output=True).returncode == 64
