"""Text files: whatever their separator, encoding and decimal mark, the schema says it and the integers are the same."""

from __future__ import annotations

import csv
import gc
import gzip
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from contract import NUMBERS, SCHEMAS, frame, same_integers, text_frame

from dpcurate import draft
from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private.row_sums import CountRows
from dpcurate.private.sources import duck, open_source, tempdir, textfile
from dpcurate.schema import Categorical, Numeric, Schema, TextFormat

TOWNS = Schema((Numeric("a", 0, 10, bins=2), Categorical("b", ("Köln €", "x"))))
SEMICOLONS = TextFormat(";", decimal=",")


def written(path, form):
    text_frame(frame()).to_csv(path, index=False, sep=form.separator or ",", decimal=form.decimal, na_rep="NA")
    text = "A table\n" * form.skip + path.read_text(encoding="utf-8")
    path.write_bytes(text.encode(form.encoding))
    return path


@pytest.mark.slow(
    but=[
        "semicolons-levels",
        "quoted-levels",
        "tabs-levels",
        "bars-levels",
        "skipped-levels",
        "skipped and rewritten-levels",
        "semicolons-people",
    ]
)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize(
    "form",
    [
        TextFormat(";", decimal=",", missing=("NA",)),
        TextFormat("\t", encoding="windows-1252", missing=("NA", "?")),
        TextFormat("|", encoding="utf-16", missing=("NA",)),
        TextFormat(decimal=",", missing=("NA",)),  # numbers in quotes
        TextFormat(";", encoding="utf-16", decimal=",", missing=("NA",), skip=3),
        TextFormat(missing=("NA",), skip=2),
    ],
    ids=["semicolons", "tabs", "bars", "quoted", "skipped and rewritten", "skipped"],
)
def test_every_way_of_writing_gives_the_same_integers(schema, form, tmp_path):
    path = written(tmp_path / "t.csv", form)
    schema = replace(schema, file=form)
    same_integers({"file": path}, schema)
    packed = tmp_path / "z.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    same_integers({"packed": packed}, schema)


def test_a_pattern_of_files_in_another_encoding(tmp_path):
    form = TextFormat(encoding="latin-1")
    table = text_frame(frame())
    for i in range(3):
        table.iloc[i::3].to_csv(tmp_path / f"part-{i}.csv", index=False, encoding="latin-1")
    same_integers({"pattern": str(tmp_path / "part-*.csv")}, replace(NUMBERS, file=form))


def counts(path, form):
    return open_source(path, replace(TOWNS, file=form)).totals([CountRows(("a", "b"), (2, 2))])[0].tolist()


def test_with_a_decimal_comma_a_point_is_no_decimal_point(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n5,5;x\n1.234;x\n1.234,5;x\n7;x\n+4,9e0;x\n")
    assert counts(path, SEMICOLONS) == [[0, 1], [0, 2]]  # thousands are missing, not small
    assert counts(path, TextFormat(";")) == [[0, 1], [0, 1]]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "before", [["", ""], ["x", ""], ['"x"', "1,2,3"], ["\ufeffx", 'a "b" c'], ["'", "it's"]], ids=str
)
def test_lines_before_the_header(before, end, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(end.join([*before, "a,b", "7,x", "1,x", ""]).encode())
    assert counts(path, TextFormat(skip=2)) == [[0, 1], [0, 1]]
    assert counts(str(tmp_path / "*.csv"), TextFormat(skip=2)) == [[0, 1], [0, 1]]


def test_an_open_quote_before_the_header_is_refused(tmp_path):
    """DuckDB would skip on to where it is closed."""
    path = tmp_path / "t.csv"
    path.write_text('x\n5" of rain\na,b\n7,x\n3" of rain,x\n1,x\n')
    with pytest.raises(OwnerError, match=r"line 2 of .* has a quotation mark without its partner"):
        counts(path, TextFormat(skip=2))
    path.write_text("x\ny\na,b\n7,x\n")
    with pytest.raises(OwnerError, match=r"no header after the 9 lines? that the schema skips"):
        counts(path, TextFormat(skip=9))


@pytest.mark.parametrize("skip", [-1, 1001, 1.0, True, "2"])
def test_how_many_lines_can_be_skipped(skip):
    with pytest.raises(SchemaError, match="file: skip must be a whole number from 0 to 1,000"):
        TextFormat(skip=skip)


def test_letters_of_windows_and_what_is_left_on_disk(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\n1,Köln €\n2,x\n".encode("windows-1252"))
    form = TextFormat(encoding="windows-1252")
    assert counts(path, form) == [[1, 1], [0, 0]]
    engine = duck.open_file(str(path), form)
    (place,) = Path(tempdir.place()).parent.glob("*/*.csv")
    assert place.parent.stat().st_mode & 0o777 == 0o700
    assert place.read_text(encoding="utf-8") == "a,b\n1,Köln €\n2,x\n"
    del engine
    gc.collect()
    assert not place.parent.exists()


def test_a_copy_of_a_process_removes_no_rows(tmp_path):
    (tmp_path / "rows").mkdir()
    tempdir.remove(tmp_path / "rows", -1)
    assert (tmp_path / "rows").exists()


def test_without_a_folder_of_our_own_nothing_is_rewritten(tmp_path, monkeypatch):
    monkeypatch.setattr(tempdir, "place", lambda: "")
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,x\n")
    with pytest.raises(OwnerError, match=r"is in latin-1, and this system offers no folder.* save it as UTF-8"):
        counts(tmp_path / "t.csv", TextFormat(encoding="latin-1"))


@pytest.mark.parametrize("rows", [0, 3, 300_000])
@pytest.mark.parametrize("packed", [False, True])
def test_the_line_that_is_not_utf8_is_named(rows, packed, tmp_path):
    text = b"a,b\n" + b"1,x\n" * rows + "2,Köln\n".encode("latin-1") + b"1,x\n" * 10
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    says = rf"line {rows + 2} is not in UTF-8: save the file as UTF-8.*--encoding windows-1252"
    with pytest.raises(OwnerError, match=says):
        counts(path, TextFormat())


def test_of_many_files_the_bad_one_is_named(tmp_path):
    for i, town in enumerate(("x", "Köln", "x")):
        (tmp_path / f"p{i}.csv").write_bytes(f"a,b\n1,{town}\n".encode("latin-1"))
    with pytest.raises(OwnerError, match=r"p1.csv': line 2 is not in UTF-8"):
        counts(tmp_path / "p*.csv", TextFormat())


def test_a_complaint_that_is_not_ours_is_passed_on(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    told = textfile.explained(str(tmp_path / "t.csv"), TextFormat(), ValueError("utf-8 is out of season"))
    assert told.endswith("utf-8 is out of season")
    told = textfile.explained(str(tmp_path / "no.csv"), TextFormat(), ValueError("utf-8 is out of season"))
    assert told.endswith("utf-8 is out of season")


def test_the_line_of_another_encoding_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,x\n1,\x81\n")
    with pytest.raises(OwnerError, match="line 3 is not in WINDOWS-1252"):
        counts(path, TextFormat(encoding="windows-1252"))
    assert not list(Path(tempdir.place()).parent.glob("*/*.csv"))
    path.write_bytes("a,b\n1,Köln €\n".encode("utf-16")[:-1])
    with pytest.raises(OwnerError, match="is not in UTF-16"):
        counts(path, TextFormat(encoding="utf-16"))


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("form", [TextFormat(), TextFormat(encoding="latin-1")], ids=["utf-8", "latin-1"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_last_line_longer_than_any_buffer_is_not_left_out(packed, form, end, tmp_path):
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    text = b"a,b\n1,x\n2," + b"x" * (33 << 20) + end
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    with pytest.raises(OwnerError, match=r"the last line of .* is longer than 2,097,152 bytes"):
        counts(path, form)
    assert not list(Path(tempdir.place()).parent.glob("*/*.csv"))


@pytest.mark.parametrize(("separator", "spelt"), [(";", '";"'), ("\t", r'"\\t"'), ("|", r'"\|"')])
def test_a_file_with_another_separator_says_so(separator, spelt, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a{separator}b\n1{separator}x\n")
    with pytest.raises(OwnerError, match=rf"its header holds {spelt}: write separator = {spelt} under \[file\]"):
        counts(path, TextFormat())
    assert counts(path, TextFormat(separator)) == [[0, 1], [0, 0]]
    (tmp_path / "t.tsv").write_text("a,b\n1,x\n")
    with pytest.raises(OwnerError, match='header holds ","'):
        counts(tmp_path / "t.tsv", TextFormat())


def test_no_row_is_repeated_in_a_complaint(tmp_path):
    path = tmp_path / "t.csv"
    for tail, says in (("1,secret,3\n", "line 5: Expected Number of Columns: 2 Found: 3"), ('1,"secret\n', "line 5: ")):
        path.write_text("a,b\n" + "1,x\n" * 3 + tail)
        with pytest.raises(OwnerError, match=says) as told:
            counts(path, TextFormat())
        assert "secret" not in str(told.value)


def test_a_folder_without_parquet_says_what_to_do(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    with pytest.raises(OwnerError, match=r"holds no .parquet file; .* such as '.*\*.csv'"):
        open_source(tmp_path, TOWNS)
    with pytest.raises(OwnerError, match="no file is there"):
        open_source(tmp_path / "p-*.parquet", TOWNS)


@pytest.mark.parametrize(
    ("start", "advice"),
    [
        (b"", "its bytes are no text. Save the table as CSV"),
        (b"PAR1", "end in .parquet"),
        (b"PK\x03\x04", "end in .xlsx"),
        (b"\xd0\xcf\x11\xe0", "save it as .xlsx or as CSV"),
        (b"\x1f\x8b", "end in .csv.gz"),
    ],
)
def test_a_file_that_is_no_text_is_not_blamed_for_its_encoding(start, advice, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(start + random.Random(1).randbytes(3000))
    for look in (lambda: open_source(path, TOWNS), lambda: draft(path)):
        with pytest.raises(OwnerError, match="is not a CSV file") as refused:
            look()
        assert advice in str(refused.value)
        assert "encoding" not in str(refused.value)


def test_a_text_with_a_stray_control_character_is_still_a_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,\x01\n" + "2,x\n" * 100)
    assert textfile.first_row(str(path), TextFormat()) == ["a", "b"]


def test_quoted_cells_that_span_lines_are_read_as_they_are(tmp_path):
    """Cells that hold quotes, separators and lines, in so large a file that reading it in parallel alone fails."""
    draw, path, counts = random.Random(5), tmp_path / "t.csv", Counter()
    pieces = ["a", "\n", '"', ",", '","', "a,b\n"]
    cells = ["".join(draw.choices(pieces, k=draw.randint(1, 200))) for _ in range(50)]
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["k", "text", "l"])
        while file.tell() < 25_000_000:
            row = draw.choice("ab"), draw.choice(cells), draw.choice("cd")
            counts[row[0], row[2]] += 1
            rows.writerow(row)
    schema = Schema((Categorical("k", ("a", "b")), Categorical("l", ("c", "d"))))
    (table,) = open_source(path, schema).totals([CountRows(("k", "l"), (2, 2))])
    assert table.tolist() == [[counts[k, level] for level in "cd"] for k in "ab"]


def test_a_cell_whose_quote_is_never_closed_is_refused(tmp_path):
    """Without parallelism DuckDB would take the rest of the file for one cell, or leave it out."""
    path, schema = tmp_path / "t.csv", Schema((Categorical("a", ("1", "2")),))
    for text in ('1,"x\n', '1,"x\n' + "1,y\n" * 1000, '"1,x\n1,y\n'):
        path.write_text("a,b\n1,x\n" + text)
        with pytest.raises(OwnerError, match="cannot read"):
            open_source(path, schema)
