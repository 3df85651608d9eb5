"""What two Debian packages differ in, for people."""
import hashlib
import io
import subprocess
import tarfile


def members_of(package, option):
    """{name: {what: value}} of one of a package's two archives, in their order."""
    content = subprocess.run(["dpkg-deb", option, package], check=True, capture_output=True).stdout
    members = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            read = archive.extractfile(member).read() if member.isfile() else member.linkname.encode()
            members[member.name] = {"mode": oct(member.mode), "owner": f"{member.uname}:{member.gname}", "time": member.mtime,
                                    "kind": member.type.decode(), "size": member.size, "sha256": hashlib.sha256(read).hexdigest()}
    return members


def differences(first, second):
    """A line for each difference; none where the packages are the same to the bit."""
    if first.read_bytes() == second.read_bytes():
        return []
    lines = []
    for option in ("--ctrl-tarfile", "--fsys-tarfile"):
        one, other = members_of(first, option), members_of(second, option)
        lines += [f"{name}: only in {first}" for name in one if name not in other]
        lines += [f"{name}: only in {second}" for name in other if name not in one]
        common = [name for name in one if name in other]
        if common != [name for name in other if name in one]:
            lines.append(f"{option}: the same files in another order")
        for name in common:
            lines += [f"{name}: {what} {value} and {other[name][what]}" for what, value in one[name].items() if value != other[name][what]]
    return lines or ["the files are the same: what differs is how they are packed (ar tv, gzip --list)"]
