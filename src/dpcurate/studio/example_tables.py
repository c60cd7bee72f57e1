"""Examples to try: a benchmark network, and a made-up clinic whose table has ids, dates and missing cells."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta

from dpcurate import networks
from dpcurate._files import save_text
from dpcurate._tables import csv_text
from dpcurate.errors import FormatError
from dpcurate.studio.cards import known
from dpcurate.studio.project import Project, Workplace

EXAMPLES = {
    "clinic": "A made-up clinic: 5,000 patients, 12 columns as they come, with ids, dates and empty cells",
    "asia": "Asia, a benchmark network: 50,000 rows, 8 columns that are described already",
}
CLINIC_ROWS, ASIA_ROWS, SEED = 5_000, 50_000, 1
CLINIC = (
    "patient_id", "visit_date", "sex", "age", "region", "education", "smoker", "exercise", "bmi", "blood_pressure",
    "medication", "outcome",
)  # fmt: skip
SCHOOL, SPORT = ("primary", "secondary", "tertiary"), ("never", "sometimes", "often", "daily")


def make_example(workplace: Workplace, name: str) -> Project:
    """A project with an example's table in it."""
    if name not in EXAMPLES:
        raise FormatError("there is no such example")
    project = workplace.make("", name)
    path = project.folder / f"{name}.csv"
    if name == "clinic":
        save_text(path, clinic_csv(CLINIC_ROWS))
        project.change(table=str(path))
        return project
    network = networks.load("asia")
    drawn = network.sample(ASIA_ROWS, seed=SEED).values()
    save_text(path, csv_text([network.schema.names, *zip(*drawn, strict=True)]))
    schema = replace(network.schema, rows=ASIA_ROWS)
    project.change(table=str(path), cards=known(schema), rows=str(schema.rows), read_as="a benchmark network")
    return project


def clinic_csv(rows: int, seed: int = SEED) -> str:
    """The clinic's table. Smoking, sport and age matter for the outcome, mostly through weight and blood pressure."""
    draw = random.Random(seed)
    return csv_text([CLINIC, *(_patient(draw, number) for number in range(rows))])


def _patient(draw: random.Random, number: int) -> tuple[object, ...]:
    sex, region = draw.choice(("female", "male")), draw.choice(("north", "south", "east", "west"))
    age = min(max(round(draw.gauss(52, 16)), 18), 97)
    school = draw.choices(SCHOOL, (2, 5, 4 if age < 60 else 1))[0]
    smokes = draw.random() < {"primary": 0.45, "secondary": 0.25, "tertiary": 0.1}[school]
    sport = draw.choices(SPORT, (4, 4, 2, 1) if smokes else (1, 3, 4, 3))[0]
    bmi = draw.gauss(28 - 1.6 * SPORT.index(sport) + 0.03 * age, 3.0)
    pressure = draw.gauss(88 + 0.5 * age + 0.9 * bmi, 8)
    treated = draw.random() < (0.8 if pressure > 145 else 0.1)
    ill = draw.random() < max(0.05 + 0.3 * smokes + 0.35 * (pressure > 150) - 0.15 * treated, 0.02)
    visit = date(2024, 1, 1) + timedelta(days=draw.randrange(600))
    return (
        f"P{number:05d}", visit.isoformat(), sex, age, region, "" if draw.random() < 0.03 else school,
        "yes" if smokes else "no", sport, "" if draw.random() < 0.05 else f"{bmi:.1f}", round(pressure),
        "NA" if draw.random() < 0.02 else "yes" if treated else "no", "ill" if ill else "well",
    )  # fmt: skip
