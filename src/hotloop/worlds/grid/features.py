"""The tokens of the grid world: what each feature means and how to scale its value."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Feature(IntEnum):
    """The second byte of a token."""

    GROUP = 0
    COMPLETION = 1
    LAST_ACTION = 2
    LAST_REWARD = 3
    VIBE = 5
    TAG = 6
    EAST = 7
    WEST = 8
    NORTH = 9
    SOUTH = 10
    AGENT_ID = 11
    TEAM = 12
    FROZEN = 13
    COOLDOWN = 14
    USES = 15
    CLIPPED = 16
    INVENTORY = 32  # The first resource's low byte; its high byte is the next, then the second resource's


# The value of a TAG token: what kind of object it is. A table's own kinds follow.
KINDS = (
    "agent",
    "wall",
    "charger",
    "carbon_extractor",
    "oxygen_extractor",
    "germanium_extractor",
    "silicon_extractor",
    "assembler",
    "chest",
    "armoury",
    "smithy",
    "beacon",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureInfo:
    """A feature's name as policies know it, and what its value is divided by."""

    name: str
    normalisation: float


FEATURES = {
    Feature.GROUP: FeatureInfo(name="agent:group", normalisation=10.0),
    Feature.COMPLETION: FeatureInfo(name="episode_completion_pct", normalisation=255.0),
    Feature.LAST_ACTION: FeatureInfo(name="last_action", normalisation=10.0),
    Feature.LAST_REWARD: FeatureInfo(name="last_reward", normalisation=100.0),
    Feature.VIBE: FeatureInfo(name="vibe", normalisation=255.0),
    Feature.TAG: FeatureInfo(name="tag", normalisation=10.0),
    Feature.EAST: FeatureInfo(name="lp:east", normalisation=255.0),
    Feature.WEST: FeatureInfo(name="lp:west", normalisation=255.0),
    Feature.NORTH: FeatureInfo(name="lp:north", normalisation=255.0),
    Feature.SOUTH: FeatureInfo(name="lp:south", normalisation=255.0),
    Feature.AGENT_ID: FeatureInfo(name="agent_id", normalisation=255.0),
    Feature.TEAM: FeatureInfo(name="team", normalisation=10.0),
    Feature.FROZEN: FeatureInfo(name="agent:frozen", normalisation=255.0),
    Feature.COOLDOWN: FeatureInfo(name="cooldown_remaining", normalisation=255.0),
    Feature.USES: FeatureInfo(name="remaining_uses", normalisation=255.0),
    Feature.CLIPPED: FeatureInfo(name="clipped", normalisation=255.0),
}


def feature_table(resources: Sequence[str]) -> dict[int, FeatureInfo]:
    """Every feature id of a world that has these resources."""
    table = {int(feature): info for feature, info in FEATURES.items()}
    for index, resource in enumerate(resources):
        for page, suffix in enumerate(("", ":p1")):
            info = FeatureInfo(name=f"inv:{resource}{suffix}", normalisation=256.0)
            table[Feature.INVENTORY + 2 * index + page] = info
    return table


GLOBAL = 0xFE  # The location of tokens that belong to no cell
UNUSED = 0xFF  # All three bytes of a token that says nothing
