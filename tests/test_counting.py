"""Steps are counted; that no test reads a clock is a rule of ruff's (ruff.toml beside this file)."""

from counting import steps


def test_steps_count_work() -> None:
    once, twice = (steps(lambda n=n: [abs(i) for i in range(n)]) for n in (1000, 2000))
    assert once + 1000 == twice
