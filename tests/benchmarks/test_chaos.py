"""The chaos command: it runs, its figures become a page, and each attack sees a ledger that was broken on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from benchmarks.chaos.attacks import ATTACKS
from benchmarks.chaos.diary import QUANTUM, STEP, Diary, Sight, compare

ROOT = Path(__file__).parents[2]
QUICK = "kills,races,damage,names,clock,disk,forks,resumes"


def chaos(*words):
    run = [sys.executable, "-m", "benchmarks.chaos", *words]
    return subprocess.run(run, capture_output=True, text=True, cwd=ROOT)


def test_a_short_run_finds_nothing_and_writes_its_page(tmp_path):
    page = tmp_path / "page.md"
    done = chaos("--minutes", "0.05", "--only", "kills,races,damage,clock,disk", "--page", str(page))
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text(encoding="utf-8")
    assert "no answer was unpaid and no payment lost" in text
    assert "kills of forks" in text
    assert "--only kills,races,damage,clock,disk" in text


@pytest.mark.slow(but=["kills"])
@pytest.mark.parametrize("attack", QUICK.split(","))
def test_an_attack_sees_what_it_is_there_for(attack):
    done = chaos("--self-test", "--only", attack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": seen: ") == len(ATTACKS[attack].breaks)


@pytest.fixture
def diary(tmp_path):
    made = Diary(tmp_path / "diary")
    yield made
    made.close()


@pytest.mark.parametrize("mark", ["asked", "answered"])
@pytest.mark.parametrize("length", range(1, 14))
def test_a_line_that_a_kill_cut_short_is_none_and_spoils_no_other(mark, length, diary):
    diary.write("asked", ["a*1"])
    os.write(diary.file, f"\n{mark} cut*12"[:length].encode())
    diary.write("asked", ["b*1"])
    assert diary.read("asked") == {"a*1": 1, "b*1": 1}
    assert not diary.read("answered")
    assert compare(diary, sight("a*1", "b*1")) == []


def sight(*tokens, **more):
    events = tuple((token, Fraction(token.rpartition("*")[2]) * QUANTUM) for token in tokens)
    spent = float(sum(price for _, price in events))
    return Sight(events, **({"spent": spent, "ceiling": 1.0} | more))


def test_what_fits_is_no_fault(diary):
    diary.write("asked", ["a*1", "b*2", "c*3", "d*1"])
    diary.write("answered", ["a*1"])
    diary.write("refused", ["d*1"])
    assert compare(diary, sight("a*1", "b*2"), sight("a*1")) == []  # b was killed between its payment and its answer


FAULTS = {
    "answer not paid": (sight("b*2"), None),
    "paid without being asked, or though refused": (sight("a*1", "d*1"), None),
    "paid without being asked": (sight("a*1", "a*1"), None),
    "paid at another price": (Sight((("a*1", 2 * QUANTUM),), float(2 * QUANTUM), 0.0, 1.0), None),
    "is not the sum": (sight("a*1", spent=0.5), None),
    "the ceiling": (sight("a*1", "b*2", ceiling=float(QUANTUM)), None),
    "payment lost: 1 earlier event": (sight("a*1"), sight("a*1", "b*2")),
    "payment lost: spent": (sight("a*1"), sight("a*1", spent=0.5)),
    "the ledger is refused": (Sight(refused="damaged"), None),
    "a trace": (Sight(trace="ValueError"), None),
}


@pytest.mark.parametrize("words", FAULTS)
def test_every_fault_is_told(words, diary):
    diary.write("asked", ["a*1", "b*2", "d*1"])
    diary.write("answered", ["a*1"])
    diary.write("refused", ["d*1"])
    now, before = FAULTS[words]
    assert any(words in fault for fault in compare(diary, now, before))


def test_a_block_left_open_pays_for_answers_up_to_its_size(diary):
    diary.write("asked", ["a*2", "b*2"])
    diary.write("answered", ["a*2", "b*2"])
    held = float(4 * QUANTUM)
    assert compare(diary, Sight((), held, held, 1.0)) == []
    assert compare(diary, Sight((), held / 2, held / 2, 1.0))


def test_a_curators_steps_are_counted(diary):
    diary.write("asked", [STEP] * 2)
    diary.write("answered", [STEP] * 2)
    assert compare(diary, Sight(((STEP, Fraction(1, 8)),), 0.125, 0.0, 1.0)) == [f"answer not paid: {STEP!r} x 1"]
