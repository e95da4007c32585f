"""One of the ranks of a training, after the first.

`python -m hotloop.lab.workers.rank '{"rank": 1, "size": 2, "host": "127.0.0.1", "port": 29500}'`
meets the others there, is told by rank 0 what to train, and follows until the end.
"""

import json
import sys

from hotloop.lab.training.ranks import follow
from hotloop.train.processes.ranks import RankLostError, client


def main() -> None:
    told = json.loads(sys.argv[1])
    try:
        follow(told["rank"], told["size"], client(told["host"], told["port"]))
    except RankLostError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
