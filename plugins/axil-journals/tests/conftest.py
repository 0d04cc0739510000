"""What all tests of this member share."""

from hypothesis import HealthCheck, settings

# Laws are not about seconds: a slow machine is no counterexample. A failure prints how to repeat
# it.
settings.register_profile(
    "axil", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("axil")
