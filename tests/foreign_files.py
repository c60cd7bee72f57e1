"""Writes the files that programs such as Excel and SAS would: tables of numbers, texts and missing cells."""

from __future__ import annotations

import ctypes
import zipfile
from importlib import import_module
from xml.sax.saxutils import escape

import pandas as pd
import pyreadstat


def numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Truth values as 1 and 0: Stata, SPSS and SAS know none."""
    return table.assign(**{name: table[name].astype(float) for name in table if table[name].dtype == bool})


def write_dta(table, path, **options):
    pyreadstat.write_dta(numbered(table), str(path), **options)
    return path


def write_sav(table, path, **options):
    pyreadstat.write_sav(numbered(table), str(path), **options)
    return path


# --- Excel ------------------------------------------------------------------------------------------------

_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default '
    'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship '
    'Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
}
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
# A format for dates: 14 is Excel's own.
_STYLES = f'<styleSheet {_MAIN}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'


def _cell(value) -> str:
    if value is None or value != value:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, pd.Timestamp):
        return f'<c s="1"><v>{(value - pd.Timestamp("1899-12-30")).days}</v></c>'
    if isinstance(value, (int, float)):
        return f"<c><v>{float(value)!r}</v></c>"
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'


def _sheet(rows) -> str:
    lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    return f"<worksheet {_MAIN}><sheetData>{lines}</sheetData></worksheet>"


def write_xlsx(sheets, path):
    """Sheets by name: lists of rows, the first of which names the columns."""
    listed = list(enumerate(sheets, start=1))
    names = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in listed)
    links = [(f"r{i}", "worksheet", f"sheet{i}.xml") for i, _ in listed] + [("r0", "styles", "styles.xml")]
    related = "".join(f'<Relationship Id="{i}" Type="{_RELATED}/{kind}" Target="{to}"/>' for i, kind, to in links)
    parts = _PARTS | {
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_RELATED}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships'
        f'">{related}</Relationships>',
        "xl/styles.xml": _STYLES,
        **{f"xl/sheet{i}.xml": _sheet(sheets[name]) for i, name in listed},
    }
    with zipfile.ZipFile(path, "w") as book:
        for name, text in parts.items():
            book.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}')
    return path


def rows_of(table: pd.DataFrame):
    return [list(table.columns), *table.astype(object).to_numpy().tolist()]


# --- SAS --------------------------------------------------------------------------------------------------

_STRING, _DOUBLE = 0, 5
_WRITER = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


def _readstat():
    """The C library in pyreadstat, which can write what its Python side cannot."""
    place = import_module("pyreadstat._readstat_writer").__file__
    library = ctypes.CDLL(place)
    for name in ("readstat_writer_init", "readstat_add_variable"):
        getattr(library, name).restype = ctypes.c_void_p
    return library


def write_sas7bdat(table, path):
    table, library, parts = numbered(table), _readstat(), []

    @_WRITER
    def keep(data, size, _context):
        parts.append(ctypes.string_at(data, size))
        return size

    writer = ctypes.c_void_p(library.readstat_writer_init())
    library.readstat_set_data_writer(writer, keep)
    variables = {}
    for name in table.columns:
        is_text = table[name].dtype == object or pd.api.types.is_string_dtype(table[name])
        kind, width = (_STRING, 16) if is_text else (_DOUBLE, 0)
        added = library.readstat_add_variable(writer, name.encode(), ctypes.c_int(kind), ctypes.c_size_t(width))
        variables[name] = ctypes.c_void_p(added), kind
    assert library.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(len(table))) == 0
    for row in table.astype(object).itertuples(index=False):
        library.readstat_begin_row(writer)
        for value, (variable, kind) in zip(row, variables.values(), strict=True):
            if value is None or value != value:
                error = library.readstat_insert_missing_value(writer, variable)
            elif kind == _STRING:
                error = library.readstat_insert_string_value(writer, variable, str(value).encode())
            else:
                error = library.readstat_insert_double_value(writer, variable, ctypes.c_double(value))
            assert error == 0
        assert library.readstat_end_row(writer) == 0
    assert library.readstat_end_writing(writer) == 0
    library.readstat_writer_free(writer)
    path.write_bytes(b"".join(parts))
    return path
