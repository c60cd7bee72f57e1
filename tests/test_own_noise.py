"""A test has the same noise every time, another than other tests, and the system's own where it is marked."""

from __future__ import annotations

import pytest

import own_noise
from dpcurate.private.noise import LARGEST_SCALE, Secure

MANY = 20


def drawn(name: str | None) -> list[int]:
    with own_noise.noise_of(name):
        return [*Secure().gaussian(LARGEST_SCALE, MANY), *Secure().laplace(LARGEST_SCALE, MANY)]


def test_the_noise_of_a_name_is_the_same_every_time_and_its_own() -> None:
    assert drawn("a") == drawn("a") != drawn("b")
    assert len(set(drawn("a"))) == 2 * MANY


def test_another_setting_gives_all_of_them_other_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn("a")
    monkeypatch.setenv(own_noise.SETTING, "7")
    assert drawn("a") != before


def test_a_test_has_the_noise_of_its_name(request: pytest.FixtureRequest) -> None:
    own = own_noise.stream(request.node.nodeid, 0)
    assert Secure().uniform() == own.uniform()
    assert Secure().uniform() != own.uniform()  # another source


@pytest.mark.secure_noise
def test_a_test_of_the_source_itself_draws_from_the_system() -> None:
    assert "stream" not in vars(Secure())
    assert drawn(None) != drawn(None)


@pytest.fixture(scope="module")
def shared() -> float:
    return Secure().uniform()


@pytest.mark.parametrize("turn", range(2))
def test_what_tests_share_has_the_same_noise_whichever_comes_first(shared: float, turn: int) -> None:
    assert shared == own_noise.stream("tests/test_own_noise.py::shared[0]", 0).uniform()
