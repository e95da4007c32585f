"""The words of a game's logical state, in an order that digest.h has too; a hash of them is its digest."""

from hotloop.worlds.cards.state import Copy, Entry, Option, Side, State


def words(s: State) -> list[int]:
    words = [s.seed, s.turn, s.step, s.active, s.first, s.holder, s.passes, s.wants, s.item]
    words += (s.subject, s.cursor, s.second_pass, s.ending, s.winner, s.decisions, s.event_count, *s.seen)
    for side in s.sides:
        words += side_words(side)
    words += [card_word(s.cards[number]) for number in sorted(s.cards)]
    words += [entry_word(entry) for entry in s.stack]
    words += (len(s.stack), *s.pending, len(s.pending), *s.attackers, len(s.attackers), len(s.options))
    words += [option_word(option) for option in s.options]
    return words


def side_words(side: Side) -> list[int]:
    words = [side.life, side.land_played, side.drew_nothing]
    for zone in (side.library, side.hand, side.battlefield):
        words += (len(zone), *zone)
    return [*words, len(side.graveyard)]


def option_word(option: Option) -> int:
    return option.kind << 32 | (option.subject & 0xFFFF) << 16 | option.object & 0xFFFF


def card_word(copy: Copy) -> int:
    flags = copy.tapped | copy.sick << 1 | copy.doomed << 2 | copy.attacking << 3 | copy.blocked << 4
    where = copy.kind | copy.zone << 8 | flags << 16 | (copy.blocking & 0xFF) << 24
    return where | copy.damage << 32 | copy.boost << 40 | copy.moves << 48


def entry_word(entry: Entry) -> int:
    return (
        entry.item
        | entry.card << 8
        | entry.seat << 16
        | (entry.target & 0xFF) << 24
        | entry.target_moves << 32
    )
