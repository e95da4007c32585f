"""The lever: the function of the user's own code that one would open and change first.

Stacks are reduced to the user's own frames, so that the time of a library counts for its caller.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping

from hotloop.core.record.stacks import Frame, Stack, identity

COVERS = 0.5  # Share of the largest function that a more specific one must cover to be chosen instead of it

# Share of its own time that a function must spend outside the user's other functions to be chosen.
KEEPS = 0.1

LEAST_YOURS = 0.05  # Share of the time below which the user's own code is not what one would change
STANDARD = re.compile(r"[/\\]lib(64)?[/\\]python\d[^/\\]*[/\\](?!site-packages|dist-packages)")

INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")

# Files of libraries that environments are built on; users do not change them to make one faster.
GENERAL = re.compile(
    r"[/\\](site|dist)-packages[/\\]"
    r"(numpy|scipy|torch|jax|jaxlib|numba|pandas|sklearn|tensorflow|tensordict|PIL|cv2|networkx|shapely)[/\\]"
)


def is_installed(file: str) -> bool:
    """Return whether a file is Python code that no interpreter comes with: a package's or the user's."""
    return file.endswith(".py") and not STANDARD.search(file)


def is_yours(file: str) -> bool:
    """Return whether a file is neither of the standard library nor of an installed package."""
    return is_installed(file) and not INSTALLED.search(file)


def is_environment(file: str) -> bool:
    """Return whether a file may be of an installed environment: of a package that is no general library."""
    return is_installed(file) and not GENERAL.search(file)


def own_stacks(found: Mapping[Stack, float], ours: str) -> dict[Stack, float]:
    """Return the time by the user's own frames; those of packages if the user's are hardly there.

    An installed environment, such as one of Gymnasium's, is what its user asks about.
    """
    whole = sum(found.values())
    yours = reduced(found, is_yours, ours)
    if sum(yours.values()) >= LEAST_YOURS * whole:
        return yours
    return reduced(found, is_environment, ours) or reduced(found, is_installed, ours)


def reduced(found: Mapping[Stack, float], is_wanted: Callable[[str], bool], ours: str) -> dict[Stack, float]:
    """Return the time by the frames of wanted files outside the folder of Hotloop itself."""
    kept: defaultdict[Stack, float] = defaultdict(float)
    wanted = {
        file: is_wanted(file) and not file.startswith(ours)
        for file in {frame[1] for stack in found for frame in stack}
    }
    for stack, weight in found.items():
        inner = tuple(frame for frame in stack if wanted[frame[1]])
        if inner and weight:
            kept[inner] += weight
    return dict(kept)


def find_lever(yours: Mapping[Stack, float]) -> Frame | None:
    """Return the most specific function that still covers most of the time, as its identity.

    A function that spends nearly all of its time in several of the user's functions gives way to the
    largest of them.
    """
    found = merged(yours)
    while True:
        totals, _ = measure(found)
        if not totals:
            return None
        largest = max(totals, key=totals.__getitem__)
        within = calls_of(found, largest)
        totals, depths = measure(within)
        covering = [each for each in totals if totals[each] >= COVERS * totals[largest]]
        chosen = min(covering, key=lambda each: (totals[each], -depths[each]))
        inner = below(within, chosen)
        if sum(inner.values()) <= (1 - KEEPS) * totals[chosen]:
            return chosen
        found = inner


def merged(yours: Mapping[Stack, float]) -> dict[Stack, float]:
    """Return the time by stack without the lines inside functions."""
    kept: defaultdict[Stack, float] = defaultdict(float)
    for stack, weight in yours.items():
        kept[tuple(identity(frame) for frame in stack)] += weight
    return dict(kept)


def measure(found: Mapping[Stack, float]) -> tuple[dict[Frame, float], dict[Frame, int]]:
    """Return the time of each function with all that it calls, and how deep it lies."""
    totals: defaultdict[Frame, float] = defaultdict(float)
    depths: defaultdict[Frame, int] = defaultdict(int)
    for stack, weight in found.items():
        for depth, frame in enumerate(stack):
            depths[frame] = max(depths[frame], depth)
        for frame in set(stack):
            totals[frame] += weight
    return dict(totals), dict(depths)


def calls_of(found: Mapping[Stack, float], chosen: Frame) -> dict[Stack, float]:
    """Return what a function takes with all that it calls, from its outermost call on."""
    kept: defaultdict[Stack, float] = defaultdict(float)
    for stack, weight in found.items():
        if chosen in stack:
            kept[stack[stack.index(chosen) :]] += weight
    return dict(kept)


def below(found: Mapping[Stack, float], chosen: Frame) -> dict[Stack, float]:
    """Return what lies below a function, from its innermost call on."""
    kept: defaultdict[Stack, float] = defaultdict(float)
    for stack, weight in found.items():
        if chosen in stack:
            last = len(stack) - 1 - stack[::-1].index(chosen)
            if stack[last + 1 :]:
                kept[stack[last + 1 :]] += weight
    return dict(kept)
