"""Files of Stata, SPSS, SAS and Excel: the same integers as the frame they were written from."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from contract import (
    SCHEMAS,
    VISITS,
    counts,
    frame,
    persons_are_refused,
    rows_of_empty_cells_are_rows,
    same_integers,
    visits,
)

from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private.row_sums import CountRows
from dpcurate.private.sources import duck, open_source, statfiles
from dpcurate.schema import Categorical, Numeric, Person, Schema
from foreign_files import rows_of, write_dta, write_sas7bdat, write_sav, write_xlsx


def written_xlsx(table, path):
    return write_xlsx({"first": rows_of(table), "second": [["z"], [1]]}, path)


WRITERS = {"t.dta": write_dta, "t.sav": write_sav, "t.sas7bdat": write_sas7bdat, "t.xlsx": written_xlsx}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("name", WRITERS)
def test_every_program_gives_the_same_integers(schema, name, tmp_path):
    path = WRITERS[name](frame(), tmp_path / name)
    same_integers({"path": path, "text": str(path)}, schema)


@pytest.mark.parametrize("name", WRITERS)
def test_rows_of_empty_cells_are_rows(name, tmp_path):
    rows_of_empty_cells_are_rows(lambda table: WRITERS[name](table, tmp_path / name))


def as_file(name, tmp_path):
    """A form of a table for the contract of persons."""

    def form(columns):
        table = pd.DataFrame({k: pd.array(v, dtype=object) for k, v in columns.items()})
        if all(isinstance(i, (int, type(None))) for i in columns["id"]):
            table["id"] = [np.nan if i is None else float(i) for i in columns["id"]]
        table["a"] = table["a"].astype(float)
        return str(WRITERS[name](table, tmp_path / name))

    return form


@pytest.mark.parametrize("name", WRITERS)
def test_whole_numbers_name_persons_whatever_the_program_stores_them_as(name, tmp_path):
    form, ids = as_file(name, tmp_path), [7, 8, 7, None, 7, 2**53 - 1, 2**53 - 2, 7, -7]
    assert counts(form(visits(ids))).sum() == 6
    assert counts(form(visits([7, 8, 7]))).sum() == 3


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("odd", [7.5, 2.0**53, 1e300])
def test_ids_that_a_double_may_have_run_together_are_refused(name, odd, tmp_path):
    table = pd.DataFrame({"id": [7.0, 8.0, odd], "a": [0.0, 1.0, 2.0]})
    persons_are_refused(str(WRITERS[name](table, tmp_path / name)))


def test_short_numbers_of_stata_name_nobody(tmp_path):
    table = pd.DataFrame({"id": np.array([7, 8], dtype=np.float32), "a": [0.0, 1.0]})
    table.to_stata(tmp_path / "t.dta", write_index=False)
    persons_are_refused(str(tmp_path / "t.dta"))


def test_texts_name_persons_in_excel(tmp_path):
    table = pd.DataFrame({"id": ["7", "07", "7", "7.0", None], "a": [0.0, 1, 2, 3, 4]})
    assert counts(str(written_xlsx(table, tmp_path / "t.xlsx"))).tolist() == [1, 1, 1, 1, 0]
    mixed = [["id", "a"], [7, 0], ["7", 1]]
    persons_are_refused(str(write_xlsx({"s": mixed}, tmp_path / "m.xlsx")))


def test_an_excel_sheet_is_named_after_a_hash(tmp_path):
    path = write_xlsx({"one": [["a"], [0]], "two": [["a"], [1], [None], [1]], "none": []}, tmp_path / "t.xlsx")
    schema = Schema((Categorical("a", (0, 1)),))
    read = lambda place: open_source(place, schema).totals([CountRows(("a",), (2,))])[0].tolist()  # noqa: E731
    assert read(path) == [1, 0]
    assert read(f"{path}#two") == [0, 2]
    with pytest.raises(OwnerError, match="has no sheet 'twi'; did you mean 'two'"):
        read(f"{path}#twi")
    with pytest.raises(OwnerError, match=r"the sheet 'none' of .* is empty"):
        read(f"{path}#none")


def test_cells_of_excel_are_what_they_look_like(tmp_path):
    rows = [["a", None, 2019, "when"], [True, "x", 1.5, pd.Timestamp("2020-01-31")], ["TRUE", 3, None, "x"]]
    engine = duck.open_statfile(str(write_xlsx({"s": [*rows[:2], [None] * 4, *rows[2:]]}, tmp_path / "t.xlsx")), None)
    assert list(engine.stored()) == ["a", "column1", "2019", "when"]
    got = engine.fetch(f"SELECT * FROM {engine.relation}")
    assert got["a"].tolist() == ["True", None, "TRUE"]
    assert got["column1"].tolist() == ["x", None, "3.0"]
    assert got["2019"].tolist()[0] == 1.5
    assert got["when"].tolist() == ["2020-01-31", None, "x"]


def test_only_the_columns_of_the_schema_are_read(tmp_path):
    path = write_dta(frame(), tmp_path / "t.dta")
    schema = Schema((Numeric("age", 0, 100),), person=Person("id", 1))
    assert set(duck.open_statfile(str(path), schema).stored()) == {"id", "age"}
    with pytest.raises(SchemaError, match="no column 'agge'; did you mean 'age'"):
        open_source(path, Schema((Numeric("agge", 0, 100),)))


def test_labels_go_into_the_codebook_and_cells_stay_codes(tmp_path):
    table = pd.DataFrame({"sex": [1.0, 2.0, np.nan, 9.0], "x": [1.5, 2.5, 3.5, 4.5]})
    labels = {"variable_value_labels": {"sex": {1: "man", 2: "woman", 9: "refused"}}, "column_labels": {"sex": "Sex?"}}
    for path in (
        write_dta(table, tmp_path / "t.dta", **labels),
        write_sav(
            table, tmp_path / "t.sav", **labels, variable_measure={"sex": "ordinal"}, missing_ranges={"sex": [9]}
        ),
    ):
        engine = duck.open_statfile(str(path), None)
        told = engine.codebook["sex"]
        assert (told.about, dict(told.labels)) == ("Sex?", {"1": "man", "2": "woman", "9": "refused"})
        assert told.ordered == (path.suffix == ".sav")
        cells = engine.fetch(f"SELECT sex FROM {engine.relation} WHERE sex < 5")["sex"].tolist()
        assert cells == [1.0, 2.0]
        declared = engine.fetch(f"SELECT count(*) AS n FROM {engine.relation} WHERE sex = 9")["n"][0]
        assert declared == (path.suffix == ".dta")  # SPSS says which values mean missing


@pytest.mark.parametrize("name", WRITERS)
def test_what_cannot_be_read_is_told_in_a_sentence(name, tmp_path, monkeypatch):
    (tmp_path / name).write_bytes(b"no table")
    with pytest.raises(OwnerError, match="cannot read"):
        open_source(tmp_path / name, VISITS)
    with pytest.raises(OwnerError, match="no file is there"):
        open_source(tmp_path / f"no-{name}", VISITS)
    for library in ("pyreadstat", "python_calamine"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(OwnerError, match=r"not installed: pip install 'dpcurate\[files\]'"):
        open_source(tmp_path / name, VISITS)


# --- files that are larger than they look ----------------------------------------------------------------

FAR = "<row r='1'><c r='A1' t='inlineStr'><is><t>a</t></is></c></row>"
SHEETS = {
    "a far cell": f"{FAR}<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>",
    "a prefix, other quotes": f'{FAR}<x:row r="1048576"><x:c s="0" r="XFD1048576"><v>1</v></x:c></x:row>',
    "cells that follow": f"{FAR}<row r='1048576'>{'<c/>' * 16384}</row>",
}
OPENING = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from dpcurate.errors import OwnerError
from dpcurate.private.sources import open_source
from dpcurate.schema import Categorical, Schema
try:
    open_source(sys.argv[1], Schema((Categorical("a", ("x", "y")),)))
except OwnerError as error:
    print(error)
"""


def with_sheet(path, cells):
    """A workbook whose first sheet holds this XML."""
    plain = write_xlsx({"s": [["a"]]}, path.with_name("plain.xlsx"))
    with zipfile.ZipFile(plain) as before, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for part in before.infolist():
            text = before.read(part).decode()
            if part.filename == "xl/sheet1.xml":
                text = re.sub("<sheetData>.*</sheetData>", f"<sheetData>{cells}</sheetData>", text)
                main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
                text = text.replace("<worksheet ", f'<worksheet xmlns:x="{main}" ')
            book.writestr(part.filename, text)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by Linux")
@pytest.mark.parametrize("cells", SHEETS.values(), ids=SHEETS)
def test_a_small_workbook_of_a_huge_sheet_does_not_end_the_process(cells, tmp_path):
    path = with_sheet(tmp_path / "far.xlsx", cells)
    assert path.stat().st_size < 3000
    ended = subprocess.run([sys.executable, "-c", OPENING, str(path)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-500:]
    assert "row 1,048,576 and one in column 16,384" in ended.stdout


def test_a_sheet_is_looked_at_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(statfiles, "_PIECE", 50)
    with pytest.raises(OwnerError, match=r"column 16,384"):
        open_source(with_sheet(tmp_path / "t.xlsx", SHEETS["a far cell"]), Schema((Categorical("a", ("x", "y")),)))


def test_a_workbook_that_unpacks_to_too_much(tmp_path, monkeypatch):
    path = with_sheet(tmp_path / "t.xlsx", FAR + " " * 10_000_000)
    monkeypatch.setattr(statfiles, "MOST_UNPACKED", 10_000_000)
    with pytest.raises(OwnerError, match="without its compression"):
        open_source(path, Schema((Categorical("a", ("x", "y")),)))


def test_a_file_that_says_it_has_more_rows_than_memory_holds(tmp_path):
    schema, path = Schema((Categorical("a", ("x", "y")),)), tmp_path / "t.dta"
    write_dta(pd.DataFrame({"a": ["x", "y"]}), path)
    true = path.read_bytes()
    at = true.index(b"<N>") + 3
    path.write_bytes(true[:at] + (2**31 - 2).to_bytes(8, "little") + true[at + 8 :])
    with pytest.raises(OwnerError, match="says that it has 2,147,483,646 rows"):
        open_source(path, schema)
