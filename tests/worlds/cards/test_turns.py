"""Each rule of timing, of the stack and of payment in an example."""

import pytest
from support.games import MOST, card, choose, fight, game, lives, offered, pass_until, settle, zones

from hotloop.worlds.cards import turns
from hotloop.worlds.cards.state import HERO, OBJECTS, VILLAIN, Ending, OptionKind, TurnStep, Wants, Zone
from hotloop.worlds.cards.table import read_deck

RED5 = "crag crag crag crag crag"


def test_the_steps_of_a_turn_come_in_their_order() -> None:
    s = game(
        mine="crag brute", theirs="crag", hand="scorch scorch", their_hand="scorch", step=TurnStep.UPKEEP
    )
    seen: list[int] = []
    turn = s.turn
    while s.turn == turn:
        if s.step not in seen:
            seen.append(s.step)
        choose(s, OptionKind.ATTACK if s.wants == Wants.ATTACKER else OptionKind.PASS)
    assert seen == [TurnStep(k) for k in range(TurnStep.UPKEEP, TurnStep.CLEANUP)]


def test_the_first_player_skips_the_first_draw() -> None:
    s = turns.begin(3, [read_deck("mirror")] * 2)
    turns.advance(s, MOST)
    assert (s.turn, s.step) == (1, TurnStep.MAIN)
    assert [len(side.hand) for side in s.sides] == [7, 7]
    while s.turn < 2 or s.step < TurnStep.MAIN:
        choose(s, OptionKind.PASS)
    assert len(s.sides[1 - s.first].hand) == 8


def test_one_land_a_turn() -> None:
    s = game(hand="crag crag scorch")
    assert offered(s) == [("LAND", "crag"), ("LAND", "crag"), ("PASS", "")]
    choose(s, OptionKind.LAND)
    assert (s.turn, offered(s)) == (3, [("CAST", "scorch"), ("PASS", "")])


def test_lands_and_creatures_are_played_in_a_main_phase_with_an_empty_stack() -> None:
    s = game(mine=RED5, hand="crag brute scorch", step=TurnStep.UPKEEP)
    assert offered(s) == [("CAST", "scorch"), ("PASS", "")]
    choose(s, OptionKind.PASS)
    pass_until(s, TurnStep.MAIN)
    assert [kind for kind, _ in offered(s)] == ["LAND", "CAST", "CAST", "LAND", "PASS"], "one was drawn"
    choose(s, OptionKind.CAST, card(s, "brute"))
    assert offered(s) == [("CAST", "scorch"), ("PASS", "")]


def test_instants_are_cast_in_the_opponents_turn() -> None:
    s = game(theirs="crag", their_hand="scorch", hand="crag", step=TurnStep.UPKEEP)
    assert (s.holder, offered(s)) == (VILLAIN, [("CAST", "scorch"), ("PASS", "")])


def test_options_are_hand_order_then_abilities_then_pass() -> None:
    s = game(mine=f"{RED5} drake crag", hand="brute scorch crag")
    assert offered(s) == [
        ("CAST", "brute"),
        ("CAST", "scorch"),
        ("LAND", "crag"),
        ("ABILITY", "drake"),
        ("PASS", ""),
    ]


def test_a_decision_with_one_option_is_taken_at_once() -> None:
    s = game(mine=RED5, hand="brute", step=TurnStep.UPKEEP)
    assert s.step == TurnStep.MAIN


def test_a_non_pass_gives_priority_to_the_active_player() -> None:
    s = game(mine="crag", theirs="crag crag", hand="scorch", their_hand="scorch scorch", step=TurnStep.UPKEEP)
    choose(s, OptionKind.PASS)
    assert s.holder == VILLAIN
    choose(s, OptionKind.CAST)
    choose(s, OptionKind.TARGET, to=OBJECTS + HERO)
    assert s.holder == HERO
    assert len(s.stack) == 1


def test_the_last_spell_resolves_first() -> None:
    s = game(mine="crag crag crag brute", theirs="shore shore", hand="scorch", their_hand="hush")
    choose(s, OptionKind.CAST)
    choose(s, OptionKind.TARGET, to=OBJECTS + VILLAIN)
    choose(s, OptionKind.CAST)
    settle(s)
    assert lives(s) == [20, 20]
    assert (zones(s, "scorch"), zones(s, "hush", VILLAIN)) == ("GRAVEYARD", "GRAVEYARD")


def test_a_counter_needs_a_spell_on_the_stack() -> None:
    s = game(mine="shore shore crag", hand="hush crag")
    assert offered(s) == [("LAND", "crag"), ("PASS", "")]


def test_targets_are_the_opponents_first_and_players_before_creatures() -> None:
    s = game(mine="crag brute", theirs="sprite giant", hand="scorch")
    choose(s, OptionKind.CAST)
    assert s.wants == Wants.TARGET
    assert s.cards[card(s, "crag")].tapped == 0, "targets are chosen before payment"
    assert [option.object for option in s.options] == [
        OBJECTS + VILLAIN,
        OBJECTS + HERO,
        card(s, "sprite", VILLAIN),
        card(s, "giant", VILLAIN),
        card(s, "brute"),
    ]
    choose(s, OptionKind.TARGET, to=OBJECTS + VILLAIN)
    settle(s)
    assert lives(s) == [20, 17]


def test_a_target_that_has_gone_is_found_on_resolution() -> None:
    s = game(mine="crag", theirs="crag runner", hand="scorch", their_hand="scorch")
    choose(s, OptionKind.CAST)
    choose(s, OptionKind.TARGET, to=card(s, "runner", VILLAIN))
    choose(s, OptionKind.CAST)
    choose(s, OptionKind.TARGET, to=card(s, "runner", VILLAIN))
    settle(s)
    assert zones(s, "runner", VILLAIN) == "GRAVEYARD"
    assert s.counts[6] == 1, "the first spell found no target"


def test_a_creature_that_left_and_came_back_is_another_one() -> None:
    s = game(mine="crag", theirs="runner", hand="scorch crag")
    choose(s, OptionKind.CAST)
    runner = card(s, "runner", VILLAIN)
    choose(s, OptionKind.TARGET, to=runner)
    for zone in (Zone.HAND, Zone.BATTLEFIELD):
        turns.move(s, runner, zone)
    settle(s)
    assert zones(s, "runner", VILLAIN) == "BATTLEFIELD"


def test_what_enters_returns_a_creature_to_its_owners_hand() -> None:
    s = game(mine="shore shore shore", theirs="giant", hand="tidecaller crag")
    choose(s, OptionKind.CAST)
    while s.wants != Wants.TARGET:
        choose(s, OptionKind.PASS)
    choose(s, OptionKind.TARGET, to=card(s, "giant", VILLAIN))
    settle(s)
    assert (zones(s, "giant", VILLAIN), zones(s, "tidecaller")) == ("HAND", "BATTLEFIELD")


def test_alone_it_returns_itself() -> None:
    s = game(mine="shore shore shore", hand="tidecaller crag")
    choose(s, OptionKind.CAST)
    settle(s)
    assert zones(s, "tidecaller") == "HAND"


def test_the_drake_breathes_fire_until_the_end_of_the_turn() -> None:
    s = game(mine="crag crag drake", hand="crag")
    choose(s, OptionKind.ABILITY)
    settle(s)
    choose(s, OptionKind.ABILITY)
    settle(s)
    assert s.cards[card(s, "drake")].power == 7
    fight(s, "drake")
    assert lives(s) == [20, 13]
    while s.turn == 3:
        choose(s, OptionKind.PASS)
    assert s.cards[card(s, "drake")].power == 5


def test_payment_taps_colours_first_and_generic_in_battlefield_order() -> None:
    s = game(mine="grove grove crag crag", hand="brute crag")
    choose(s, OptionKind.CAST)
    tapped = [s.cards[n].tapped for n in range(4)]
    assert tapped == [1, 1, 1, 0]
    assert s.sides[HERO].mana == [0] * 6


def test_a_sprout_makes_mana_once_it_has_rested() -> None:
    s = game(mine="sprout crag", hand="brute crag")
    choose(s, OptionKind.LAND)
    assert ("CAST", "brute") in offered(s)
    s = game(mine="sprout crag", hand="brute crag")
    s.cards[card(s, "sprout")].sick = 1
    choose(s, OptionKind.LAND)
    assert ("CAST", "brute") not in offered(s)


def test_too_little_or_the_wrong_colour_does_not_pay() -> None:
    assert ("CAST", "brute") not in offered(game(mine="grove grove grove", hand="brute crag"))
    assert ("CAST", "brute") not in offered(game(mine="crag crag", hand="brute crag"))


def test_a_draw_from_an_empty_library_loses() -> None:
    s = game(hand="crag", step=TurnStep.UPKEEP)
    for seat in (HERO, VILLAIN):
        s.sides[seat].library.clear()
    while s.ending == Ending.NONE:
        choose(s, OptionKind.PASS)
    assert (s.ending, s.winner) == (Ending.LIBRARY, HERO)


def test_options_that_do_not_fit_are_left_out_but_never_the_pass() -> None:
    s = game(hand="crag " * 25)
    assert len(s.options) == MOST
    assert s.options[-1].kind == OptionKind.PASS
    assert s.truncated == 6


@pytest.mark.parametrize("text", ["mirror", "ramp", "keywords", "40*crag", "30*crag+30*brute"])
def test_decks_are_read(text: str) -> None:
    assert 40 <= len(read_deck(text)) <= 60
