"""One of the ranks of a training, after the first.

`python -m hotloop.lab.workers.rank '{"rank": 1, "size": 2, "host": "localhost", "port": 2950, "parent": 42}'`
meets the others there, is told by rank 0 what to train, and follows until the end, or that of its parent.
"""

import json
import sys

from hotloop.lab.training.ranks import follow, leave_with
from hotloop.train.ranks import RankLostError, client


def main() -> None:
    told = json.loads(sys.argv[1])
    leave_with(told["parent"])
    try:
        follow(told["rank"], told["size"], client(told["host"], told["port"]))
    except RankLostError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
