"""The SBOM of the Debian package, for whoever gets the package. A lane of scripts/check-lanes."""
from bill_of_materials import check_package, use_of, write_sbom
from debian_root import SOURCE
from package_test import package  # noqa: F401 (a fixture)

OUTPUT = SOURCE / "build/sbom/shoal.deb.cdx.json"


def test_the_list_of_the_package_is_whole(package):  # noqa: F811
    written = write_sbom("package", package, "--output", OUTPUT)
    assert written.returncode == 0, written.stderr
    components = check_package(OUTPUT, package)
    assert {"libgrpc++1.51", "libssl3", "libc-ares2"} <= set(components), "what is needed in turn is listed, too"
    assert {name for name in components if use_of(components[name]) == "compiled in"} >= {"nlohmann-json3-dev", "libcli11-dev"}
    print(f"{OUTPUT}: {len(components)} components")
