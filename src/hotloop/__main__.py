"""`python -m hotloop COMMAND ...` is `hotloop COMMAND ...`."""

import sys

from hotloop.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
