"""What happens in a game, one readable line a decision."""

from collections.abc import Mapping
from typing import Any

from hotloop.worlds.cards.observe import Limits, views
from hotloop.worlds.cards.state import DECK, HERO, NONE, OBJECTS, Happened, Step, seat_of
from hotloop.worlds.cards.table import CARDS

WORDS = {
    Happened.DRAW: "draws",
    Happened.LAND: "plays",
    Happened.CAST: "casts",
    Happened.ABILITY: "activates",
    Happened.TRIGGER: "triggers",
    Happened.RESOLVE: "resolves",
    Happened.COUNTERED: "loses the spell",
    Happened.ATTACK: "attacks with",
    Happened.BLOCK: "blocks with",
    Happened.DAMAGE: "deals",
    Happened.DIE: "buries",
    Happened.RETURN: "returns",
}
NAMES = ("hero", "villain")


class Log:
    """Tells what both did since the last decision, and where the game stands."""

    def __init__(self, limits: Limits, decks: tuple[list[int], list[int]]) -> None:
        self.limits, self.decks = limits, decks
        self.seat = HERO
        self.turn = 0

    def tell(self, shown: Mapping[str, Any]) -> str:
        over = bool(shown["end_reason"])
        seat = self.seat if over else int(shown["seat"])
        self.seat = int(shown["seat"])
        parts = views(shown["observations"][0], self.limits)
        lives = [round(float(parts[name][0, 0]) * 20) for name in ("agent", "opponent")]
        mine, theirs = lives if seat == HERO else lives[::-1]
        step = Step(int(parts["agent"][0, 13:25].argmax())).name.lower().replace("_", " ")
        happened = "; ".join(self.event(row, seat) for row in parts["events"] if row[-1])
        turn = int(shown["turn_count"])
        head = f"turn {turn:2}" if turn != self.turn else " " * 7
        self.turn = 0 if over else turn
        return f"{head}  {step:12} hero {mine:2}  villain {theirs:2}   {happened or 'nothing happens'}"

    def event(self, row: Any, seat: int) -> str:
        what, subject, other = Happened(int(row[0])), int(row[2]), int(row[3])
        who = NAMES[seat if row[1] else 1 - seat]
        if what == Happened.DAMAGE:
            harmed = self.name(other, seat)
            return f"{who}'s {self.name(subject, seat)} deals {round(float(row[4]) * 10)} to {harmed}"
        about = "" if subject == NONE else f" {self.name(subject, seat)}"
        at = "" if other == NONE else f" at {self.name(other, seat)}"
        return f"{who} {WORDS[what]}{about}{at}" if what != Happened.DRAW else f"{who} draws a card"

    def name(self, number: int, seat: int) -> str:
        """An object as this seat numbers it."""
        if number >= OBJECTS:
            return NAMES[seat if number == OBJECTS else 1 - seat]
        owner = seat if seat_of(number) == 0 else 1 - seat
        return CARDS[self.decks[owner][number % DECK]].name
