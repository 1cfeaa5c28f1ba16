"""Sphinx: what the documentation site is made of. ``make docs`` builds it into ``docs/_build/html``.

Nothing is fetched, neither when it is built nor when it is read. The extensions in ``_ext`` say what they do at their
beginning; why things are as they are: ``decisions/project.md``.
"""

import sys
import warnings
from pathlib import Path

import matplotlib as mpl

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))
mpl.use("Agg")
# Of joblib, for the gallery: it ends a worker whose memory has grown (torch, pictures), and starts another.
warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)

import kernpool  # noqa: E402  # after what it depends on

project = "kernpool"
author = "The kernpool developers"
project_copyright = f"{author}. Licence: BSD-3-Clause"
version = release = kernpool.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "site_api",
    "site_embed",
    "site_figures",
    "site_languages",
    "site_math",
    "site_search",
    "site_sources",
]
root_doc = "index"
language = "en"
exclude_patterns = [
    "_build",
    "gallery/**.ipynb",
    "gallery/**.py",
    "gallery/**.md5",
    "gallery/**.json",
    "**sg_execution_times.rst",  # tables that ask other sites for scripts
]
templates_path = ["_templates"]
nitpicky = True
highlight_language = "none"
pygments_style = "a11y-high-contrast-light"

# --- pages in Markdown
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4  # as forges make them
myst_dmath_double_inline = False

# --- the interface: pages are made from what the subpackages export (`site_api`)
autosummary_generate = True
autosummary_ignore_module_all = False
toc_object_entries_show_parents = "hide"  # of a class all methods would begin alike, and be cut there
autodoc_typehints = "none"  # docstrings say it in words, with shapes and units
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "known"  # `site_api`: links what has a page, and prints the rest as code

# --- examples that are run
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "reset_modules": ("matplotlib",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "min_reported_time": 5,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "backreferences_dir": "api/items/gallery",
    "doc_module": ("kernpool",),
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "thumbnail_size": (400, 280),
    "parallel": 2,
}

# --- what it looks like
html_theme = "pydata_sphinx_theme"
html_title = "kernpool"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # without, the script of the theme calls the empty mode an error, on every page
html_show_sphinx = False
html_copy_source = False
# No pages beside them.
ALONE = ("index", "how-it-works", "quick-start", "tour", "explorer")
html_sidebars = {page: [] for name in ALONE for page in (name, f"zh/{name}")}
html_theme_options = {
    "logo": {"text": "kernpool"},
    "navbar_align": "left",
    "navbar_end": ["language-switch", "theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "zh/index": [], "tour": [], "zh/tour": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search",
}
