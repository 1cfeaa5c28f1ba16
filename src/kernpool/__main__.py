"""``python -m kernpool``."""

import sys

from kernpool.cli import main

if __name__ == "__main__":
    sys.exit(main())
