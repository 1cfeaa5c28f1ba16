"""The tour: an introduction to attention pooling, on one page of pictures, formulas, code and numbers.

Read `steps.py` first: the code of each section, which the page prints and executes. `figures.py` draws its
pictures, and `page.py` puts pictures and texts into a folder with one HTML page. `style.css` is its style; the
texts are `en.json` and `zh.json`.
"""

from kernpool.tour.page import LANGUAGES, LARGEST_SEED, make_tour

__all__ = ["LANGUAGES", "LARGEST_SEED", "make_tour"]
