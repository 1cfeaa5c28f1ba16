"""Version of the package, which other files read from here."""

__version__ = "0.1.0.dev0"
