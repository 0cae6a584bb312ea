"""Settings of property tests: the same examples in every run, and no deadline."""

from hypothesis import HealthCheck, settings

STEADY = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
