"""Put the libraries that a wheel for Linux needs into it (auditwheel), and their licences beside them.

    python repair_wheel.py WHEEL DESTINATION

Fails where a library comes along whose licence is not in .ci/licenses.
"""

import base64
import csv
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

# By the first letters of a library's name: its licence as SPDX calls it, and the file with the text.
LICENCES = {"libgomp": ("GPL-3.0-or-later WITH GCC-exception-3.1", "libgomp.txt")}
TEXTS = Path(__file__).parent / "licenses"


def licence_of(library):
    found = [licence for start, licence in LICENCES.items() if library.startswith(start + "-")]
    if len(found) != 1:
        sys.exit(f"{library} is in the wheel, but its licence is not in {TEXTS}")
    return found[0]


def with_licences(metadata, licences):
    """The text of METADATA with these licences named: they are those of the wheel, too."""
    head, blank, body = metadata.partition("\n\n")
    lines = []
    for line in head.splitlines():
        if line.startswith("License-Expression: "):
            line = " AND ".join([line, *sorted(expression for expression, _ in licences)])
        lines.append(line)
        if line.startswith("License-File: "):
            lines += [f"License-File: {name}" for _, name in sorted(licences)]
    if len(lines) != len(head.splitlines()) + len(licences):
        sys.exit("METADATA must have one License-File")
    return "\n".join(lines) + blank + body


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def add_licences(wheel):
    """Rewrite `wheel` with the licences of the libraries that were put into it."""
    with zipfile.ZipFile(wheel) as archive:
        entries = [(info, archive.read(info)) for info in archive.infolist() if not info.is_dir()]
    libraries = [PurePosixPath(info.filename).name for info, _ in entries if ".libs/lib" in info.filename]
    licences = {licence_of(library) for library in libraries}
    if not licences:
        return libraries
    (record,) = (info.filename for info, _ in entries if info.filename.endswith(".dist-info/RECORD"))
    folder = record.removesuffix("/RECORD")
    files = {info.filename: content for info, content in entries if info.filename != record}
    files[f"{folder}/METADATA"] = with_licences(files[f"{folder}/METADATA"].decode(), licences).encode()
    for _, name in licences:
        files[f"{folder}/licenses/{name}"] = (TEXTS / name).read_bytes()
    rows = io.StringIO()
    csv.writer(rows, lineterminator="\n").writerows(
        [*((name, digest(content), len(content)) for name, content in files.items()), (record, "", "")])
    files[record] = rows.getvalue().encode()  # the last one, as the format advises
    modes = {info.filename: info for info, _ in entries}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, modes[record].date_time)
            info.external_attr = (modes.get(name) or modes[record]).external_attr
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return libraries


def main(wheel, destination):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["auditwheel", "repair", "--wheel-dir", folder, wheel], check=True)
        (repaired,) = Path(folder).glob("*.whl")
        libraries = add_licences(repaired)
        Path(destination).mkdir(parents=True, exist_ok=True)
        target = Path(destination, repaired.name)
        target.write_bytes(repaired.read_bytes())
    print(f"{target}: {target.stat().st_size} bytes, with {', '.join(libraries) or 'no library'}")


main(*sys.argv[1:])
