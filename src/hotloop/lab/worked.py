"""Whether two sides did the same work."""

from hotloop.core.record import Work

COUNTED = ("agent_steps", "resets", "decisions", "updates", "tokens", "rows")
TOLERANCE = 0.01


def different_work(a: Work, b: Work) -> str | None:
    for name in COUNTED:
        one, other = (getattr(work, name) / max(work.env_steps, 1) for work in (a, b))
        if abs(one - other) > TOLERANCE * max(one, other):
            return f"{name} {one:.3g} against {other:.3g} an env-step"
    return None
