"""`python -m s2dq` is the `s2dq` command."""

import sys

from s2dq.cli import main

if __name__ == "__main__":
    sys.exit(main())
