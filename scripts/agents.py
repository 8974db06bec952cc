"""For agents.sh: writes the scenario of the medium code review, and a text of 300 KiB. Usage: agents.py DIR"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def only(name, keep):
    """A built-in scenario with one of its inputs."""
    text = (ROOT / f"scenarios/{name}.toml").read_text().replace("../fixtures", str(ROOT / "fixtures"))
    head, *inputs = text.split("[[inputs]]")
    at = inputs[-1].index("[model]")
    inputs[-1], rest = inputs[-1][:at], inputs[-1][at:]
    return head, [one for one in inputs if f'name = "{keep}"' in one], rest


def inputs(folder):
    head, found, rest = only("review", "medium")
    # One reader for all: the one that reads everything back, so that every agent shows how that is done with it.
    rest, replaced = re.subn(r"(?m)^population = .*$", "population = { diligent = 1.0 }", rest)
    assert replaced == 1, "the scenario names its population on one line"
    (folder / "medium.toml").write_text(f"{head}[[inputs]]{found[0]}\n{rest}")
    lines, size, number = [], 0, 0
    while size < 300 * 1024:
        number += 1
        heading = number % 40 == 1
        line = f"## Part {number // 40 + 1}\n" if heading else f"Line {number} of the text says that item {number * 7919 % 100003} must be kept.\n"
        lines.append(line)
        size += len(line)
    (folder / "text.md").write_text("".join(lines)[: 300 * 1024])


if __name__ == "__main__":
    inputs(pathlib.Path(sys.argv[1]))
