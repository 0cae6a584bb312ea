"""How property tests run here: the same examples every time, and no verdict on the speed of the machine."""

from hypothesis import HealthCheck, settings

STEADY = settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
