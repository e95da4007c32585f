"""Record a world's golden hashes, by its twin: python tests/worlds/record_golden.py grid."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.play import golden_hash

from hotloop.core import registry

for name in sys.argv[1:]:
    world = registry.worlds()[name]
    hashes = {found.preset: golden_hash(found.target, "reference") for found in registry.presets(world)}
    (Path(__file__).parent / "golden" / f"{name}.json").write_text(json.dumps(hashes, indent=2) + "\n")
