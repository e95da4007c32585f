"""Each keyword in an example."""

import pytest
from support.games import card, choose, fight, game, lives, offered, pass_until, zones

from hotloop.worlds.cards import turns
from hotloop.worlds.cards.state import HERO, VILLAIN, Ending, GameState, OptionKind, TurnStep, Wants


def combat(mine: str, theirs: str = "", blocks: dict[str, str] | None = None) -> GameState:
    """All of mine attack; there are lands to play, so that somebody is asked after combat."""
    s = game(mine=mine, theirs=theirs, hand="crag crag", their_hand="crag")
    fight(s, mine, blocks)
    return s


def test_an_unblocked_attacker_hurts_the_player_and_is_tapped() -> None:
    s = combat("brute")
    assert lives(s) == [20, 18]
    assert s.cards[card(s, "brute")].tapped == 1


def test_two_equal_creatures_trade() -> None:
    s = combat("brute", "brute", {"brute": "brute"})
    assert (zones(s, "brute"), zones(s, "brute", VILLAIN)) == ("GRAVEYARD", "GRAVEYARD")
    assert lives(s) == [20, 20]


def test_flying_is_blocked_by_flying_and_reach_only() -> None:
    s = game(mine="skimmer", theirs="brute webspinner sprite", hand="crag", their_hand="crag")
    pass_until(s, TurnStep.ATTACKERS, Wants.ATTACKER)
    asked = []
    while s.step < TurnStep.SECOND_MAIN:
        if s.wants == Wants.BLOCKER:
            asked.append(s.cards[s.subject].row.name)
        attack_or_pass(s)
    assert asked == ["webspinner", "sprite"]


def attack_or_pass(s: GameState) -> None:
    choose(s, OptionKind.ATTACK if s.wants == Wants.ATTACKER else OptionKind.PASS)


def test_vigilance_does_not_tap() -> None:
    s = combat("sentinel")
    assert s.cards[card(s, "sentinel")].tapped == 0
    assert lives(s) == [20, 16]


def test_a_creature_that_just_came_cannot_attack_unless_it_has_haste() -> None:
    for name, attacks in (("brute", False), ("runner", True)):
        s = game(mine=name, hand="crag")
        s.cards[card(s, name)].sick = 1
        fight(s, name)
        assert lives(s)[1] == (19 if attacks else 20)


def test_a_defender_never_attacks() -> None:
    s = game(mine="rampart brute", hand="crag")
    pass_until(s, TurnStep.ATTACKERS, Wants.ATTACKER)
    assert s.cards[s.subject].row.name == "brute"


def test_deathtouch_kills_whatever_it_hurts() -> None:
    s = combat("giant", "viper", {"viper": "giant"})
    assert (zones(s, "giant"), zones(s, "viper", VILLAIN)) == ("GRAVEYARD", "GRAVEYARD")


def test_trample_deals_what_is_left_to_the_player() -> None:
    s = combat("tusker", "brute", {"brute": "tusker"})
    assert lives(s) == [20, 19]
    assert zones(s, "brute", VILLAIN) == "GRAVEYARD"
    assert zones(s, "tusker") == "BATTLEFIELD"


def test_without_trample_a_blocked_attacker_hurts_no_player() -> None:
    assert lives(combat("giant", "runner", {"runner": "giant"})) == [20, 20]


def test_menace_needs_two_blockers() -> None:
    alone = combat("gang", "brute", {"brute": "gang"})
    assert lives(alone) == [20, 17]
    assert zones(alone, "brute", VILLAIN) == "BATTLEFIELD"
    both = combat("gang", "brute runner", {"brute": "gang", "runner": "gang"})
    assert lives(both) == [20, 20]
    assert zones(both, "gang") == "GRAVEYARD"


def test_damage_goes_to_blockers_in_their_order() -> None:
    s = combat("gang", "brute runner", {"brute": "gang", "runner": "gang"})
    assert (zones(s, "brute", VILLAIN), zones(s, "runner", VILLAIN)) == ("GRAVEYARD", "GRAVEYARD")
    s = combat("gang", "webspinner runner", {"webspinner": "gang", "runner": "gang"})
    assert (zones(s, "webspinner", VILLAIN), zones(s, "runner", VILLAIN)) == ("BATTLEFIELD", "BATTLEFIELD")


def test_first_strike_kills_before_it_is_struck() -> None:
    s = combat("lancer", "brute", {"brute": "lancer"})
    assert (zones(s, "lancer"), zones(s, "brute", VILLAIN)) == ("BATTLEFIELD", "GRAVEYARD")


def test_first_strike_strikes_once_and_double_strike_twice() -> None:
    assert lives(combat("lancer")) == [20, 18]
    assert lives(combat("duelist")) == [20, 18]
    s = combat("duelist", "brute", {"brute": "duelist"})
    assert (zones(s, "duelist"), zones(s, "brute", VILLAIN)) == ("GRAVEYARD", "GRAVEYARD")


def test_lifelink_gains_what_it_deals() -> None:
    assert lives(combat("sprite")) == [21, 19]


def test_damage_wears_off_at_the_end_of_the_turn() -> None:
    s = combat("brute", "webspinner", {"webspinner": "brute"})
    assert s.cards[card(s, "webspinner", VILLAIN)].damage == 2
    turn = s.turn
    while s.turn == turn:
        attack_or_pass(s)
    assert s.cards[card(s, "webspinner", VILLAIN)].damage == 0


def test_a_blocker_that_is_gone_leaves_its_attacker_blocked() -> None:
    s = game(mine="crag giant", theirs="runner", hand="scorch crag")
    pass_until(s, TurnStep.ATTACKERS, Wants.ATTACKER)
    choose(s, OptionKind.ATTACK)
    pass_until(s, TurnStep.BLOCKERS, Wants.BLOCKER)
    choose(s, OptionKind.BLOCK)
    choose(s, OptionKind.CAST)
    choose(s, OptionKind.TARGET, to=card(s, "runner", VILLAIN))
    pass_until(s, TurnStep.SECOND_MAIN)
    assert zones(s, "runner", VILLAIN) == "GRAVEYARD"
    assert lives(s) == [20, 20]


def test_without_attackers_there_are_no_blockers_and_no_damage() -> None:
    s = game(mine="brute", theirs="brute", hand="crag", their_hand="crag")
    seen = set()
    turn = s.turn
    while s.turn == turn and s.step <= TurnStep.SECOND_MAIN:
        seen.add(TurnStep(s.step))
        choose(s, OptionKind.PASS)
    assert not seen & {TurnStep.BLOCKERS, TurnStep.DAMAGE}


@pytest.mark.parametrize("seat", [HERO, VILLAIN])
def test_a_player_at_no_life_has_lost_and_both_at_once_is_a_draw(seat: int) -> None:
    s = game(hand="crag")
    s.sides[seat].life = 0
    turns.check(s)
    assert (s.ending, s.winner) == (Ending.LIFE, 1 - seat)
    s = game(hand="crag")
    s.sides[HERO].life = s.sides[VILLAIN].life = -1
    turns.check(s)
    assert (s.ending, s.winner) == (Ending.DRAW, -1)
    assert offered(s)
