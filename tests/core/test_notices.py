import pytest

from hotloop.core.errors import Code, Notice, notice

SAMPLES = {"share": 0.07, "cv": 0.3, "change": -0.1, "cost": 0.2, "load": 3.5, "cpus": 1.5}


@pytest.mark.parametrize("code", list(Code))
def test_every_notice_fills_in_its_facts_and_has_a_remedy(code):
    made = notice(code, **{name: SAMPLES.get(name, 7) for name in code.facts})
    assert made.code == code.value
    assert made.remedy
    assert "{" not in made.text + made.remedy


def test_a_notice_says_what_happened_in_numbers():
    assert notice(Code.UNACCOUNTED, share=0.071) == Notice(
        code="unaccounted", text="7.1% of the step is in no phase", remedy="add phases where the time goes"
    )


@pytest.mark.parametrize("facts", [{}, {"share": 0.1, "why": "x"}])
def test_facts_that_are_missing_or_too_many_are_a_mistake_of_ours(facts):
    with pytest.raises(TypeError, match="notice unaccounted names"):
        notice(Code.UNACCOUNTED, **facts)
