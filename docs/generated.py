"""Texts of the site that are made by running the code: what `s2dq COMMAND --help` prints."""

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = ("preprocess", "postprocess", "apply", "bench")


def write_all(folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for command in COMMANDS:
        Path(folder, f"{command}.txt").write_text(help_of(command), encoding="utf-8")


def help_of(command):
    """The help of a command, in lines that fit the page."""
    environment = {**os.environ, "COLUMNS": "84", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-P", "-c", "from s2dq.cli import main; main()", command, "--help"],
                          env=environment, capture_output=True, text=True, check=True)  # fmt: skip
    return done.stdout.replace("usage: -c", "usage: s2dq")
