"""`python -m hotloop.sim TARGET [key=value...]` is `hotloop sim`."""

import sys

from hotloop.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["sim", *sys.argv[1:]]))
