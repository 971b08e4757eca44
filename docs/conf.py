"""Sphinx's settings: `pip install ".[docs]" && sphinx-build -W docs docs/_build/html`.

Nothing is fetched: the theme brings its own style sheets and fonts, and there are no inventories of other projects.
"""

import sys
from pathlib import Path

from docutils.nodes import Text, literal_block

import s2dq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "s2dq"
author = "s2dq developers"
copyright = "s2dq developers, BSD-3-Clause"
release = version = s2dq.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]

# A name in single backticks is a link where there is something to link to, and code where there is not.
default_role = "py:obj"
add_module_names = False
autodoc_typehints = "none"
autodoc_mock_imports = ["dask", "torch"]  # as far as pages need them: their classes stand in signatures alone
toc_object_entries = False
numpydoc_show_class_members = False  # pages name the methods they have
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"s2dq {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


def generate(app):
    """Pictures and tables that are made by running the code."""
    import generated
    import pictures

    pictures.write_all(HERE / "_generated")
    generated.write_all(HERE / "_generated")


def without_empty_end(app, doctree):
    """Sessions end with an empty line in the source, where one ends the expected output."""
    for node in doctree.findall(literal_block):
        if node.rawsource == node.astext():
            node.rawsource = node.rawsource.rstrip()
            node[:] = [Text(node.rawsource)]


def setup(app):
    app.connect("builder-inited", generate)
    app.connect("doctree-read", without_empty_end)
