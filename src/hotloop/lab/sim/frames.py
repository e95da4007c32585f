"""Draws what a tape or a bundle plays: pictures of one env, or the words of a world that draws none."""

import base64
import io
from collections.abc import Iterator
from contextlib import closing
from math import ceil
from typing import Any

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.errors import MissingError
from hotloop.core.machine import install_line
from hotloop.core.record import PICTURE, Frame, Frames
from hotloop.core.registry import find
from hotloop.core.world import Narrator
from hotloop.envs import tapes
from hotloop.envs.batch import Batch
from hotloop.envs.open import make
from hotloop.lab.validate.bundle import Bundle

MOST = 300  # Frames of a file; of a longer tape every so many steps
REPLAYS = 5  # That look for the slowest step
LARGEST = 8 << 20  # Bytes of all pictures of a file: what is beyond is left out
Shown = tuple[Batch, Any]  # A batch after a step, and the actions that led there; None after the reset


def frames_of_tape(tape: tapes.Tape) -> Frames:
    """The first env of a tape, with its slowest step marked."""
    slowest, took_ns = slowest_step(tape)
    notes = {slowest: f"the slowest step of this replay, {took_ns / 1e3:,.1f} µs"} if slowest else {}
    played = zip(tapes.replay(tape, **drawing(tape.target)), (None, *tape.actions), strict=False)
    frames = draw_frames(played, 0, len(tape.actions), notes)
    return Frames(target=tape.target, title=f"{tape.target}, seed {tape.seed}", frames=frames)


def slowest_step(tape: tapes.Tape) -> tuple[int, int]:
    """The step that took longest in replays that draw nothing, and its nanoseconds.

    Of several replays the shortest time of each step counts: what a first play or another program cost is in
    one of them, what the step has to do in all.
    """
    times = np.min([timed(tape) for _ in range(REPLAYS)], axis=0)
    step = int(np.argmax(times))
    return step, int(times[step])


def timed(tape: tapes.Tape) -> list[int]:
    """Nanoseconds of every step of one replay; those of the reset are not counted."""
    times, before = [], 0
    for _ in tapes.replay(tape):
        now = now_ns()
        times.append(now - before if before else 0)
        before = now_ns()
    return times


def frames_of_bundle(bundle: Bundle) -> Frames | None:
    """The env that differs, as the reference plays it up to there; None where it is none of our worlds."""
    facts = bundle.facts
    if facts.reference.is_foreign:
        return None
    last, env = len(bundle.actions), facts.difference.env or 0
    note = f"the first difference: {facts.difference.field} {facts.difference.a} against {facts.difference.b}"
    frames = draw_frames(played_bundle(bundle), env, last, {last: note})
    title = f"{facts.reference.words}: {facts.difference}"
    return Frames(target=facts.reference.words, title=title, frames=frames)


def played_bundle(bundle: Bundle) -> Iterator[Shown]:
    reference = bundle.facts.reference
    with closing(make(reference.name, **{**reference.keys, **drawing(reference.name)})) as batch:
        batch.reset()
        for env, state in enumerate(bundle.start[0] if bundle.start else ()):
            batch.load(env, state)
        yield batch, None
        for index, actions in enumerate(bundle.actions):
            if begun := [env for before, env in bundle.facts.resets if before == index]:
                batch.reset_many(begun)
            batch.step(np.ascontiguousarray(actions, np.int32))
            yield batch, actions


def drawing(target: str) -> dict[str, str]:
    """The settings of a batch that is looked at."""
    return {} if find(target).world.narrator else {"render_mode": "rgb_array"}


def draw_frames(played: Iterator[Shown], env: int, last: int, notes: dict[int, str]) -> tuple[Frame, ...]:
    """The frames that there is room for: the first, the last, those with a note, and even steps between."""
    every, size = max(1, ceil(last / MOST)), 0
    kept: list[Frame] = []
    narrator: Narrator | None = None
    for step, (batch, actions) in enumerate(played):
        if narrator is None and batch.spec.world.narrator:
            narrator = batch.spec.world.narrator(batch.spec.parameters)
        text = describe_step(narrator, batch, env, actions) if narrator else None
        if step % every and step != last and step not in notes:
            continue
        picture = None if narrator else picture_of(batch, env)
        size += len(picture or text or "")
        if size > LARGEST:
            break
        kept.append(Frame(step=step, picture=picture, text=text, note=notes.get(step)))
    return tuple(kept)


def describe_step(narrator: Narrator, batch: Batch, env: int, actions: Any) -> str:
    """What a world says of the step that it just made."""
    if actions is None:
        return "the beginning"
    over = bool(batch.terminals[env].any() or batch.truncations[env].any())
    rows = {
        "actions": np.asarray(actions[env]),
        "observations": (batch.final_observations if over else batch.observations)[env],
        "rewards": batch.rewards[env],
        **{name: values[env] for name, values in batch.infos.items()},
    }
    return narrator.tell(rows)


def picture_of(batch: Batch, env: int) -> str:
    try:
        from PIL import Image
    except ImportError:
        raise MissingError(f"pictures need Pillow: {install_line('PIL')}") from None
    buffer = io.BytesIO()
    pixels = batch.render(env)
    assert not isinstance(pixels, str), "the batch was made to draw images"
    Image.fromarray(pixels).convert("P", palette=Image.Palette.ADAPTIVE).save(buffer, "PNG", optimize=True)
    return PICTURE + base64.b64encode(buffer.getvalue()).decode()
