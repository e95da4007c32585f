"""What all tests share."""

from hypothesis import HealthCheck, settings

# How quickly examples are drawn is the machine's business: no test asserts on the time of day.
settings.register_profile("any machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("any machine")
