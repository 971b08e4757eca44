"""Print the one line in the fenced blocks of a page that contains all the given words.

    python documented_command.py PAGE WORD...
"""

import sys
from pathlib import Path


def fenced_lines(text):
    """Yield the lines between ``` fences, stripped of their indentation and of a leading prompt."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("```"):
            inside = not inside
        elif inside:
            yield line.removeprefix("$ ")


def main(page, *words):
    found = [line for line in fenced_lines(Path(page).read_text()) if all(word in line for word in words)]
    if len(found) != 1:
        sys.exit(f"{page}: {len(found)} lines instead of one with {words}: {found}")
    print(found[0])


main(*sys.argv[1:])
