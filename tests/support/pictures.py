"""What pictures show: their artists, and their pixels."""

import io

import numpy as np


def ends(shade):
    """Return the places of a shade of `fill_between`, and its lower and upper ends there."""
    vertices = np.concatenate([path.vertices for path in shade.get_paths()])
    x = np.unique(vertices[:, 0])
    at = [vertices[vertices[:, 0] == place, 1] for place in x]
    return x, np.array([y.min() for y in at]), np.array([y.max() for y in at])


def entries(ax):
    """Return what the legend says."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def pixels(figure):
    """Draw a figure as a PNG, and read it back."""
    from matplotlib.image import imread

    file = io.BytesIO()
    figure.savefig(file, format="png")
    file.seek(0)
    return imread(file)


def pixels_of(figure, artist):
    """Count the pixels of a picture that an artist changes: those that differ once it is hidden."""
    before = pixels(figure)
    artist.set_visible(False)
    after = pixels(figure)
    artist.set_visible(True)
    assert before.shape == after.shape
    return int(np.any(before != after, axis=2).sum())


def share_of_columns(path, color, left=0.0, right=1.0):
    """Return the share of a PNG's columns of pixels, between two shares of its width, that have a colour in them."""
    from matplotlib.colors import to_rgb
    from matplotlib.image import imread

    found = np.all(np.abs(imread(path)[:, :, :3] - to_rgb(color)) < 0.02, axis=2)
    width = found.shape[1]
    return found[:, int(left * width) : int(right * width)].any(axis=0).mean()
