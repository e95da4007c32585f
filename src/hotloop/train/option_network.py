"""The network for worlds whose actions are options about objects.

An option is scored by what it is, by the objects that it points at, and by a view of all objects; its place
in the list says nothing. Of a row with room for everything only what is there is worked on, and objects are
added up: attention between them would cost the square of their number, and what an option is about reaches
its score by its pointers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from hotloop.core.errors import InputError
from hotloop.core.world import Part
from hotloop.train.settings import TrainSettings

# Sums over objects are divided by this: how many there are must be seen, and a mean would hide it.
CROWD = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """The objects of one part that are there, in all rows one after another."""

    rows: Tensor  # The row of each
    places: Tensor  # Its place in the part
    features: Tensor


class ObjectReader(nn.Module):
    """Embeds the objects of a part that are there, with what another part says more about them."""

    def __init__(self, part: Part, more: Part | None, width: int) -> None:
        super().__init__()
        self.part, self.more = part, more
        features = part.shape[-1] + (more.shape[-1] if more else 0)
        self.layer = nn.Linear(features, width)

    def forward(self, objects: Tensor, more: Tensor | None) -> tuple[There, Tensor]:
        """Objects [rows, count, features], to those that are there and their embeddings [there, width]."""
        found = there(objects)
        features = found.features
        if more is not None and self.more is not None:
            features = torch.cat((features, join_parts(found, more, self.more.joins_where)), dim=-1)
        return found, torch.relu(self.layer(features))


class OptionsNetwork(nn.Module):
    """Objects, a trunk over the sum of them, and a head that scores each option by what it points at."""

    has_fixed_shapes = False  # How many objects are there decides the sizes of a pass

    def __init__(self, parts: Sequence[Part], num_actions: int, settings: TrainSettings) -> None:
        super().__init__()
        if settings.lstm:
            raise InputError(f"lstm={settings.lstm}: the network for options has no memory; leave lstm out")
        self.parts, self.num_actions = {part.name: part for part in parts}, num_actions
        self.options_part = next(part for part in parts if part.kind == "options")
        self.pointers = next(part for part in parts if part.points_at)
        named = [self.parts[name] for name in self.pointers.points_at]
        more = {part.joins: part for part in parts if part.joins}
        self.objects = [part for part in named if part.kind == "objects"]
        self.vectors = [part for part in parts if part.kind == "vector" and not part.points_at]
        width = settings.embedding
        self.encoder = nn.ModuleDict(
            {part.name: ObjectReader(part, more.get(part.name), width) for part in self.objects}
            | {part.name: nn.Linear(part.size, width) for part in named if part not in self.objects}
        )
        size = sum(part.size for part in self.vectors) + width * len(self.objects)
        widths = (size, *settings.hidden)
        layers = [each for two in pairwise(widths) for each in (nn.Linear(*two), nn.ReLU(inplace=True))]
        self.trunk = nn.Sequential(*layers)
        points = width * self.pointers.shape[-1]
        self.options = nn.Linear(self.options_part.shape[-1] + points, width)
        self.view = nn.Linear(widths[-1], width, bias=False)
        self.policy = nn.Linear(width, 1)
        self.value = nn.Linear(widths[-1], 1)

    def forward(
        self, observations: Tensor, memory: None = None, begins: Tensor | None = None
    ) -> tuple[Tensor, Tensor, None]:
        """Logits and values of observations [rows, row]."""
        parts = split(observations, self.parts.values())
        objects = Objects(len(observations), observations.device)
        sums = [self.read(self.parts[name], parts, objects) for name in self.pointers.points_at]
        seen = [parts[part.name].flatten(1) for part in self.vectors]
        features = self.trunk(torch.cat([*seen, *(each for each in sums if each is not None)], dim=-1))
        options = there(parts[self.options_part.name])
        pointed = parts[self.pointers.name][options.rows, options.places]
        about = [objects.at(options.rows, pointers) for pointers in pointed.long().unbind(-1)]
        hidden = self.options(torch.cat([options.features, *about], dim=-1))
        hidden = torch.relu(hidden + self.view(features).index_select(0, options.rows))
        logits = observations.new_zeros(len(observations), self.num_actions)
        scores = self.policy(hidden)[..., 0].to(logits.dtype)
        logits = logits.index_put((options.rows, options.places), scores)
        return logits, self.value(features)[..., 0], None

    def read(self, part: Part, parts: dict[str, Tensor], objects: "Objects") -> Tensor | None:
        """Put a part's objects among all; the sum of them, where there may be several."""
        reader = self.encoder[part.name]
        if not isinstance(reader, ObjectReader):
            objects.add_one(torch.relu(reader(parts[part.name].flatten(1))))
            return None
        more = parts[reader.more.name] if reader.more else None
        found, embedded = reader(parts[part.name], more)
        objects.add(found, embedded, part.shape[0])
        sums: Tensor = embedded.new_zeros(len(parts[part.name]), embedded.shape[-1])
        return sums.index_add(0, found.rows, embedded) / CROWD

    def first_memory(self, rows: int, device: torch.device) -> None:
        """It has none."""


class Objects:
    """The embeddings of everything that an option may point at; what is not there is nothing."""

    def __init__(self, rows: int, device: torch.device) -> None:
        self.rows, self.device = rows, device
        self.tables: list[Tensor] = []
        self.places: list[Tensor] = []
        self.count = 1  # the first stands for nothing

    def add(self, found: There, embedded: Tensor, most: int) -> None:
        """Objects of a part with room for so many a row."""
        places = torch.zeros(self.rows, most, dtype=torch.int64, device=self.device)
        numbers = torch.arange(self.count, self.count + len(embedded), device=self.device)
        places[found.rows, found.places] = numbers
        self.places.append(places)
        self.tables.append(embedded)
        self.count += len(embedded)

    def add_one(self, embedded: Tensor) -> None:
        """One object a row."""
        numbers = torch.arange(self.count, self.count + self.rows, device=self.device)
        self.places.append(numbers[:, None])
        self.tables.append(embedded)
        self.count += self.rows

    def at(self, rows: Tensor, pointers: Tensor) -> Tensor:
        """What pointers name in their rows; -1 is nothing."""
        nothing = torch.zeros(self.rows, 1, dtype=torch.int64, device=self.device)
        places = torch.cat([nothing, *self.places], dim=-1)[rows, pointers + 1]
        none = self.tables[0].new_zeros(1, self.tables[0].shape[-1])
        return torch.cat([none, *self.tables]).index_select(0, places)


def split(rows: Tensor, parts: Iterable[Part]) -> dict[str, Tensor]:
    """Views of the parts of rows, each [rows, *shape]."""
    views, first = {}, 0
    for part in parts:
        views[part.name] = rows[:, first : first + part.size].view(-1, *part.shape)
        first += part.size
    return views


def there(objects: Tensor) -> There:
    """The objects [rows, count, features] whose last feature says that they are there."""
    rows, places = (objects[..., -1] != 0).nonzero(as_tuple=True)
    return There(rows=rows, places=places, features=objects[rows, places])


def join_parts(found: There, more: Tensor, where: int) -> Tensor:
    """What a second part says of each object: its k-th row is about a row's k-th one with a column set."""
    said = more.new_zeros(len(found.rows), more.shape[-1])
    ones = found.features[:, where].nonzero()[:, 0]
    rows = found.rows[ones]
    counts = torch.bincount(rows, minlength=len(more))
    ranks = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
    room = ranks < more.shape[1]
    said[ones[room]] = more[rows[room], ranks[room]]
    return said
