"""The tour: the whole story of attention pooling on one page, with pictures, formulas, code and numbers."""

from kernpool.pages.tour.make import LANGUAGES, LARGEST_SEED, make_tour

__all__ = ["LANGUAGES", "LARGEST_SEED", "make_tour"]
