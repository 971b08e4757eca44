"""Print the requirements of one extra of pyproject.toml, without building the package to install them.

    python extra.py NAME
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
print(*project["optional-dependencies"][sys.argv[1]])
