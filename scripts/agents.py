"""For agents.sh: writes the scenarios of the medium code review and of one result of 300 KiB. Usage: agents.py DIR"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parts(name):
    """A built-in scenario: what stands before its inputs, these, and what stands after them."""
    text = (ROOT / f"scenarios/{name}.toml").read_text()
    head, *inputs = text.split("[[inputs]]")
    at = inputs[-1].index("[model]")
    inputs[-1], rest = inputs[-1][:at], inputs[-1][at:]
    # One reader for all: the one that reads everything back, so that every agent shows how that is done with it.
    rest, replaced = re.subn(r"(?m)^population = .*$", "population = { diligent = 1.0 }", rest)
    assert replaced == 1, "the scenario names its population on one line"
    return head, inputs, rest


def medium():
    head, inputs, rest = parts("review")
    (one,) = [one for one in inputs if 'name = "medium"' in one]
    return f"{head}[[inputs]]{one}\n{rest}"


def one_result(path):
    head, _, rest = parts("document")
    return f'{head}[[inputs]]\nname = "one-result"\nsource = "document"\npath = "{path}"\n\n{rest}'


def text():
    """300 KiB of lines; sections and obligations are fewer than an answer may hold."""
    lines, size, number = [], 0, 0
    while size < 300 * 1024:
        number += 1
        item = number * 7919 % 100003
        if number % 60 == 1:
            line = f"## Part {number // 60 + 1}\n"
        elif number % 20 == 7:
            line = f"Line {number} of the text says that item {item} must be kept.\n"
        else:
            line = f"Line {number} of the text is about item {item} and the next one.\n"
        lines.append(line)
        size += len(line)
    return "".join(lines)[: 300 * 1024]


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    (folder / "text.md").write_text(text())
    (folder / "medium.toml").write_text(medium())
    (folder / "one-result.toml").write_text(one_result("text.md"))
