"""Functions that are measured themselves."""

CALLED: list[int] = []


def query(n: int = 3, fail: bool = False) -> int:
    CALLED.append(n)
    if fail and len(CALLED) > 1:
        raise OSError("the database has gone")
    return sum(range(n))


def quicker(n: int = 3) -> int:
    return n * (n - 1) // 2


def wrong(n: int = 3) -> int:
    return n
