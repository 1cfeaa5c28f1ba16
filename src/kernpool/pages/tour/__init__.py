"""The tour: attention pooling from the first idea to training, on one page of pictures, formulas, code and numbers.

Read `steps.py` first: the code of each section, which is what the page prints and executes. `step.py` says what a
section is made of, `drawing.py` draws it, `pictures.py` writes PNG and SVG, `page.py` makes the page in `style.css`,
and `make.py` puts it all into a folder. The texts are `en.json` and `zh.json`.
"""

from kernpool.pages.tour.make import LANGUAGES, LARGEST_SEED, make_tour

__all__ = ["LANGUAGES", "LARGEST_SEED", "make_tour"]
