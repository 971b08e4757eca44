"""Compare the files of an sdist or a wheel with what the source tree says they must hold.

    python check_files.py sdist|wheel|repaired SOURCE ARCHIVE

A repaired wheel has libgomp, too, its licence, and what auditwheel says of where it comes from.
"""

import re
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

METADATA = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}


def source_files(source):
    """Return every file of the source tree, relative to it."""
    source = Path(source)
    return {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}


def expected_in_sdist(source):
    """All of the source tree, and nothing but the metadata beside it."""
    return source_files(source) | {"PKG-INFO", "setup.cfg"}


def in_sdist(archive):
    with tarfile.open(archive) as tar:
        names = [PurePosixPath(member.name) for member in tar.getmembers() if member.isfile()]
    inside = ["/".join(name.parts[1:]) for name in names]
    return {name for name in inside if not name.startswith("s2dq.egg-info/")}


def expected_in_wheel(source):
    """Python files, stubs, declarations, py.typed and one extension: no sources, no headers, no tests."""
    files = {name for name in source_files(source) if name.startswith("s2dq/")}
    kept = {name for name in files if name.endswith((".py", ".pyi", ".pxd", "/py.typed"))}
    extension = "s2dq/_kernels" + sysconfig.get_config_var("EXT_SUFFIX")
    return kept | {extension} | {f"dist-info/{name}" for name in METADATA}


def expected_in_repaired(source):
    """What is in a wheel, and the OpenMP that it was linked to, whose name ends in a hash and a version."""
    more = {"s2dq.libs/libgomp.so", "dist-info/licenses/libgomp.txt", "dist-info/sboms/auditwheel.cdx.json"}
    return expected_in_wheel(source) | more


def in_repaired(archive):
    return {re.sub(r"^(s2dq\.libs/\w+)-[0-9a-f]+\.so[.0-9]*$", r"\1.so", name) for name in in_wheel(archive)}


def in_wheel(archive):
    with zipfile.ZipFile(archive) as wheel:
        names = [info.filename for info in wheel.infolist() if not info.is_dir()]
    return {"dist-info/" + name.partition("/")[2] if ".dist-info/" in name else name for name in names}


def main(kind, source, archive):
    expect, look = {
        "sdist": (expected_in_sdist, in_sdist),
        "wheel": (expected_in_wheel, in_wheel),
        "repaired": (expected_in_repaired, in_repaired),
    }[kind]
    expected, found = expect(source), look(archive)
    for name in sorted(expected - found):
        print(f"missing: {name}")
    for name in sorted(found - expected):
        print(f"not expected: {name}")
    if expected != found:
        sys.exit(f"{archive}: wrong files")
    print(f"{archive}: the {len(found)} files expected, {Path(archive).stat().st_size} bytes")


main(*sys.argv[1:])
