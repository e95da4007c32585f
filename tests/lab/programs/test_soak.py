import psutil
from support.leaving import leaves

from hotloop.core.record.experiments import RUNNING
from hotloop.lab.programs.measure import soak
from hotloop.options.sweeps import SoakProgramOptions


def test_a_soak_watches_what_works_after_the_program_and_ends_it() -> None:
    before = launchers()
    record = soak(leaves(cpu_s=600, sleep_s=0), SoakProgramOptions(minutes=3 / 60))
    assert record.soak is not None
    (threads,) = (each for each in record.soak.trends if each.name == RUNNING)
    assert threads.curve[-1][1] == 1
    assert not record.notices
    assert launchers() <= before


def test_a_soak_names_what_a_program_left_asleep() -> None:
    record = soak(leaves(cpu_s=0.1, sleep_s=600), SoakProgramOptions(minutes=1))
    assert record.soak is not None
    assert record.soak.ended == "the program ended"
    assert [each.code for each in record.notices if each.code == "left-behind"]


def launchers() -> set[int]:
    """Return the launchers of this process that run; another test may have left one, or a zombie."""
    family = psutil.Process().children(recursive=True)
    running = [each for each in family if each.status() != psutil.STATUS_ZOMBIE]
    return {each.pid for each in running if "launcher.py" in " ".join(each.cmdline())}
