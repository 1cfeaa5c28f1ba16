"""Entry point of the command line for ``python -m kernpool``."""

import sys

from kernpool.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
