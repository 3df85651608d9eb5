"""What differs between two packages is said by name."""
import os
import shutil

import pytest

from debian_root import run
from package_difference import differences

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed (package dpkg)")

CONTROL = """Package: small
Version: 1
Architecture: amd64
Maintainer: nobody <nobody@localhost>
Description: {}
"""


def package(directory, description="small", mode=0o644, content="a", time=1700000000, more=()):
    """A package of one file, or two."""
    tree = directory / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(CONTROL.format(description))
    for name in ("file", *more):
        (tree / name).write_text(content)
        (tree / name).chmod(mode)
    run("dpkg-deb", "--root-owner-group", "--build", tree, directory / "small.deb", env={**os.environ, "SOURCE_DATE_EPOCH": str(time)})
    return directory / "small.deb"


def test_equal_packages_have_no_difference(tmp_path):
    assert differences(package(tmp_path / "a"), package(tmp_path / "b")) == []


@pytest.mark.parametrize("change, named", [
    ({"mode": 0o600}, ["./file: mode 0o644 and 0o600"]),
    ({"more": ["another"]}, ["./another: only in {second}"]),
    ({"content": "bc"}, ["./file: size 1 and 2", "./file: sha256 "]),
    ({"description": "other"}, ["./control: sha256 "]),
    ({"time": 1600000000}, ["./file: time 1700000000 and 1600000000"]),
])
def test_what_differs_is_named(tmp_path, change, named):
    first, second = package(tmp_path / "a"), package(tmp_path / "b", **change)
    found = differences(first, second)
    for text in named:
        assert any(line.startswith(text.format(second=second)) for line in found), found


def test_another_way_to_pack_is_a_difference_too(tmp_path):
    first = package(tmp_path / "a")
    second = tmp_path / "second.deb"
    run("dpkg-deb", "--raw-extract", first, tmp_path / "tree")
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tmp_path / "tree", second, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    assert differences(first, first) == []
    found = differences(first, second)
    assert found and all(str(tmp_path) not in line for line in found), found
