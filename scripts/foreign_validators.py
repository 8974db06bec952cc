"""A run folder's JUnit and CSV files, as junitparser, pandas and DuckDB read them.

Usage: foreign_validators.py FOLDER, or --snippets MARKDOWN DIR to write the marked snippets of a
document into DIR. Exits 1 at the first difference.
"""

import collections
import json
import pathlib
import re
import sys

TABLES = ("runs", "summary", "rules")
UNITS = ("_tokens", "_bytes", "_ms", "cost")


def records(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def check_tables(folder):
    import duckdb
    import pandas

    verdict = json.loads((folder / "verdict.json").read_text())
    manifest = json.loads((folder / "manifest.json").read_text())
    plan = manifest["plan"]
    expected = {
        "runs": len(records(folder, "runs.jsonl")),
        "summary": len(plan["inputs"]) * len(plan["configurations"]),
        "rules": sum(len(candidate["rules"]) for candidate in verdict["candidates"]),
    }
    for table in TABLES:
        path = folder / f"{table}.csv"
        frame = pandas.read_csv(path)
        assert len(frame) == expected[table], (table, len(frame), expected[table])
        for column in frame.columns:
            if column.endswith(UNITS):
                assert pandas.api.types.is_numeric_dtype(frame[column]), (table, column, frame[column].dtype)
        read = duckdb.sql(f"select * from read_csv('{path}')")
        assert read.columns == list(frame.columns), (table, read.columns)
        assert len(read.fetchall()) == expected[table]
        for column, kind in zip(read.columns, read.types):
            if column.endswith(UNITS) and frame[column].notna().any():
                assert str(kind) in ("BIGINT", "HUGEINT", "DOUBLE"), (table, column, kind)
    # Equal figures, whoever adds them up.
    frame = pandas.read_csv(folder / "runs.csv")
    total = duckdb.sql(f"select sum(input_tokens) from read_csv('{folder / 'runs.csv'}')").fetchall()[0][0]
    told = sum(record["input_tokens"] or 0 for record in records(folder, "runs.jsonl"))
    assert frame["input_tokens"].sum() == total == told, (total, told)
    assert frame["model_time_ms"].isna().all(), "what was not measured is missing, not 0"
    return {"pandas": pandas.__version__, "duckdb": duckdb.__version__}


def state_of(case):
    results = {type(result).__name__.lower() for result in case.result}
    return results.pop() if results else "success"


def check_junit(folder):
    import junitparser

    verdict = json.loads((folder / "verdict.json").read_text())
    suites = list(junitparser.JUnitXml.fromfile(str(folder / "junit.xml")))
    assert [suite.name for suite in suites[1:]] == [f"candidate {c['configuration']}" for c in verdict["candidates"]]
    decision = list(suites[0])[0]
    outcome = {0: "success", 3: "failure", 4: "skipped", 6: "failure"}.get(verdict["exit_code"], "error")
    assert state_of(decision) == outcome, (state_of(decision), verdict["exit_code"])
    seen = collections.Counter()
    for suite, candidate in zip(suites[1:], verdict["candidates"]):
        cases = list(suite)
        assert len(cases) == len(candidate["rules"]) == suite.tests
        for case, row in zip(cases, candidate["rules"]):
            wanted = {"holds": "success", "broken": "failure", "not_run": "error"}.get(row["state"], "skipped")
            if not candidate["considered"] and wanted != "success":
                wanted = "skipped"
            assert state_of(case) == wanted, (case.name, state_of(case), row["state"])
            numbers = {p.name: p.value for p in case.child(junitparser.Properties)}
            if row["observed"] is not None:
                assert float(numbers["observed"]) == row["observed"]
            assert int(numbers["n"]) == row["n"]
            seen[wanted] += 1
    return dict(seen)


def write_snippets(document, folder):
    text = pathlib.Path(document).read_text()
    found = re.findall(r"<!-- validated: ([a-z-]+) -->\n```yaml\n(.*?)```", text, re.S)
    assert {name for name, _ in found} == {"github-workflow", "gitlab-ci"}, found
    for name, snippet in found:
        (pathlib.Path(folder) / f"{name}.yml").write_text(snippet)


def main():
    if sys.argv[1] == "--snippets":
        write_snippets(sys.argv[2], sys.argv[3])
        return
    folder = pathlib.Path(sys.argv[1])
    print("tables agree:", check_tables(folder))
    print("junit.xml agrees:", check_junit(folder))


if __name__ == "__main__":
    main()
