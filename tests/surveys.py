"""A survey as newcomers have one, in every kind of file, and the schema that a draft of it should be."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpcurate.schema import Categorical, Numeric, Ordinal, Schema
from foreign_files import rows_of, write_dta, write_sas7bdat, write_sav, write_xlsx

WORDS = ("low", "medium", "high")
LABELS = {"smoker": {0: "no", 1: "yes"}, "health": dict(enumerate(WORDS, start=1))}


def survey(rows=1200, seed=3):
    """What a newcomer has: ids, ages, incomes with decimals, yes and no, a scale, words, dates, remarks, gaps."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(46, 17, rows), 18, 93).round()
    smoker = rng.random(rows) < 0.2 + 0.004 * (age - 18)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D")
    table = pd.DataFrame(
        {
            "person_id": rng.permutation(rows) + 100_001,
            "age": age.astype(int),
            "income": np.exp(rng.normal(10.2 - 0.3 * smoker, 0.4)).clip(4_000, 90_000).round(2),
            "smoker": np.where(smoker, "yes", "no"),
            "trust": rng.integers(1, 6, rows),
            "health": np.array(WORDS)[np.clip((2.6 - 0.02 * age + rng.normal(0, 0.5, rows)).astype(int), 0, 2)],
            "town": rng.choice(np.array(["Köln", "Bern", "Graz"], dtype=object), rows),
            "seen": days.strftime("%Y-%m-%d"),
            "remark": [f"said {i}" for i in range(rows)],
        }
    )
    table.loc[rng.random(rows) < 0.05, "income"] = np.nan
    table.loc[rng.random(rows) < 0.05, "town"] = None
    return table


def coded(table):
    """With codes in the place of words, as Stata and SPSS keep them."""
    places = {word: float(place) for place, word in LABELS["health"].items()}
    return table.assign(smoker=(table["smoker"] == "yes").astype(float), health=table["health"].map(places))


KINDS = {
    "decimals.csv": lambda t, p: t.to_csv(p, index=False),
    "semicolons.csv": lambda t, p: t.to_csv(p, index=False, sep=";", decimal=",", encoding="windows-1252", na_rep="NA"),
    "t.parquet": lambda t, p: t.to_parquet(p),
    "t.dta": lambda t, p: write_dta(coded(t), p, variable_value_labels=LABELS),
    "t.sav": lambda t, p: write_sav(coded(t), p, variable_value_labels=LABELS),
    "t.sas7bdat": lambda t, p: write_sas7bdat(t, p),
    "t.xlsx": lambda t, p: write_xlsx({"s": rows_of(t)}, p),
}
WANTED = Schema(
    (
        Numeric("age", 0, 100),
        Numeric("income", 0, 100_000, missing="own"),
        Categorical("smoker", ("no", "yes")),
        Ordinal("trust", (1, 2, 3, 4, 5)),
        Ordinal("health", WORDS),
        Categorical("town", ("Bern", "Graz", "Köln"), missing="own"),
    )
)
