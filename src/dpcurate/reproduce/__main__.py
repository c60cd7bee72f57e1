"""`python -m dpcurate.reproduce`."""

import sys

from dpcurate.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
