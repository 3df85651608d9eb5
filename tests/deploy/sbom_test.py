"""scripts/write-sbom, on a small machine whose packages are made up."""
import json
import shutil

import pytest

from bill_of_materials import check_package, read, use_of, write_sbom
from debian_root import run

pytestmark = pytest.mark.skipif(not all(map(shutil.which, ("dpkg-deb", "ninja", "cc", "git"))),
                                reason="dpkg-deb, ninja, cc or git is not installed")

STATUS = """Package: libfirst1
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Source: first (1:1.2+dfsg-3)
Version: 1:1.2+dfsg-3+b1
Depends: libc6 (>= 2.34), default-log | log-daemon
Description: the first
 of several lines
 .
 Depends: nothing

Package: libc6
Status: install ok installed
Architecture: amd64
Source: glibc
Version: 2.36-9
Pre-Depends: base-files

Package: base-files
Status: install ok installed
Architecture: all
Version: 12

Package: some-log
Status: install ok installed
Architecture: all
Version: 3~rc1
Provides: log-daemon (= 3)

Package: libunneeded2
Status: install ok installed
Architecture: amd64
Version: 2

Package: libgone1
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""
OS_RELEASE = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n'
CONTROL = """Package: shoal
Version: 0.1.0
Architecture: amd64
Maintainer: nobody <nobody@localhost>
Depends: libfirst1 (>= 1:1.2), libgone1
Description: small
"""
NINJA = """
rule cc
  command = cc -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
build main.o: cc main.c
build installed: phony main.o
"""


@pytest.fixture
def root(tmp_path):
    for name, content in (("var/lib/dpkg/status", STATUS), ("etc/os-release", OS_RELEASE)):
        (tmp_path / "root" / name).parent.mkdir(parents=True)
        (tmp_path / "root" / name).write_text(content)
    return tmp_path / "root"


@pytest.fixture
def package(tmp_path):
    """In a build folder with one program, which is compiled with a header of libc6-dev."""
    build = tmp_path / "build"
    (tmp_path / "tree/DEBIAN").mkdir(parents=True)
    (tmp_path / "tree/DEBIAN/control").write_text(CONTROL)
    build.mkdir()
    run("dpkg-deb", "--root-owner-group", "--build", tmp_path / "tree", build / "shoal_0.1.0_amd64.deb")
    (build / "main.c").write_text("#include <stdlib.h>\nint main() { return 0; }\n")
    (build / "build.ninja").write_text(NINJA)
    run("ninja", "-C", build)
    return build / "shoal_0.1.0_amd64.deb"


def with_headers(root):
    """The status file has the package of the headers, too."""
    owners = run("sh", "-c", "dpkg-query --show --showformat '${Package}\\n' libc6-dev linux-libc-dev 'libgcc-*-dev'").split()
    with open(root / "var/lib/dpkg/status", "a") as status:
        for name in owners:
            status.write(f"\nPackage: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5\nDepends: libunneeded2\n")
    return root


def test_all_that_a_package_needs_is_listed(tmp_path, root, package):
    written = write_sbom("package", package, "--root", with_headers(root), "--output", tmp_path / "new/bom.json", SOURCE_DATE_EPOCH="1700000000")
    assert written.returncode == 0, written.stderr
    components = check_package(tmp_path / "new/bom.json", package)
    assert {name for name, each in components.items() if use_of(each) == "run time"} == \
        {"libfirst1", "libc6", "base-files", "some-log", "libgone1"}
    assert use_of(components["libc6-dev"]) == "compiled in"
    assert "libunneeded2" not in components
    first = components["libfirst1"]
    assert first["version"] == "1:1.2+dfsg-3+b1"
    assert first["purl"] == "pkg:deb/debian/libfirst1@1%3A1.2%2Bdfsg-3%2Bb1?arch=amd64&distro=debian-12"
    assert {"name": "debian:source", "value": "first 1:1.2+dfsg-3"} in first["properties"]
    assert {"name": "debian:source", "value": "glibc 2.36-9"} in components["libc6"]["properties"]
    # What is not installed where the package was built has no version.
    assert "version" not in components["libgone1"] and components["libgone1"]["purl"] == "pkg:deb/debian/libgone1?distro=debian-12"
    assert json.loads((tmp_path / "new/bom.json").read_text())["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"


def test_the_same_package_gives_the_same_list(tmp_path, root, package):
    written = []
    for name, time in (("a", "1"), ("b", "1"), ("c", "2")):
        made = write_sbom("package", package, "--root", with_headers(root) if name == "a" else root, "--output", tmp_path / name,
                          SOURCE_DATE_EPOCH=time, PYTHONHASHSEED=str(ord(name)))
        assert made.returncode == 0, made.stderr
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert json.loads(written[0])["serialNumber"] != json.loads(written[2])["serialNumber"]


def test_all_that_an_image_holds_is_listed(tmp_path, root):
    with open(root / "var/lib/dpkg/status", "a") as status:
        status.write("\nPackage: shoal\nStatus: install ok installed\nArchitecture: amd64\nVersion: 0.1.0\nDepends: libfirst1\n")
    written = write_sbom("image", "shoal:0.1.0", "--root", root, "--output", tmp_path / "bom.json")
    assert written.returncode == 0, written.stderr
    described, components = read(tmp_path / "bom.json")
    assert (described["type"], described["name"], described["version"]) == ("container", "shoal", "0.1.0")
    assert set(components) == {"Debian GNU/Linux", "libfirst1", "libc6", "base-files", "some-log", "libunneeded2", "shoal"}
    assert components["shoal"]["purl"] == "pkg:generic/shoal@0.1.0" and "licenses" in components["shoal"]


def test_what_is_missing_is_named(tmp_path, root, package):
    output = ["--output", tmp_path / "bom.json"]
    # The machine that has built the package has the headers' package.
    lacking = write_sbom("package", package, "--root", root, *output)
    assert lacking.returncode == 78 and "libc6-dev" in lacking.stderr, lacking.stderr
    (package.parent / "build.ninja").unlink()
    unbuilt = write_sbom("package", package, "--root", with_headers(root), *output)
    assert unbuilt.returncode == 78 and str(package.parent) in unbuilt.stderr, unbuilt.stderr
    empty = write_sbom("image", "shoal:1", "--root", tmp_path, *output)
    assert empty.returncode == 78 and str(tmp_path / "var/lib/dpkg/status") in empty.stderr, empty.stderr
    for wrong in (["image", "shoal", "--root", tmp_path, *output], ["package"], ["other"]):
        assert write_sbom(*wrong).returncode == 64, wrong
    assert not (tmp_path / "bom.json").exists()
