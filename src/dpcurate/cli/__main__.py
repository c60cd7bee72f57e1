"""`python -m dpcurate.cli`, the same as `dpcurate`."""

import sys

from dpcurate.cli import main

if __name__ == "__main__":
    sys.exit(main())
