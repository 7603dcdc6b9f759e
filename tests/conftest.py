"""Settings that every test shares.

Property tests draw the same examples in every run, so that a red test stays red; ``make soak`` draws fresh ones, many
more, and prints how to reproduce a failure. No deadline: tests must not depend on the speed of the machine.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, derandomize=True, database=None)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=5_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")
