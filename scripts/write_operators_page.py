"""Write docs/operators.md: how many of ONNX's own node cases the engine passes, operator by operator."""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx

from node_cases import Outcome, Verdict, load_cases, run_cases
from powerlab.engine.frontend.onnx_reader.build import OLDEST_OPSET
from powerlab.engine.ops import SUPPORTED
from powerlab.engine.ops.quantized import OF_MICROSOFT
from powerlab.engine.ops.sequences import SEQUENCES

_PAGE = Path(__file__).resolve().parent.parent / "docs" / "operators.md"

_HEAD = """\
# Operators

Which ONNX operators the built-in engine supports, measured with the standard's own **node cases** (onnx {version}):
networks of one operator, with inputs and the published result. A test runs all of them; `make docs` writes this page.
The engine reads opset {oldest} and newer; the column *opset* says for which versions the cases are written.
`powerlab engine operators` lists the operators.

- **float32**: cases in which every tensor that may be float32 is float32; indices, shapes and conditions are integers
  and booleans as the operator requires. **Other types** are the rest: float16, float64, 8-bit numbers, sums of
  integers, strings, sequences.
- **passed**: the result is within the standard's tolerance (a thousandth of the value; in float16 two thousandths, in
  bfloat16 16; of DFT and STFT also half a unit in the last place of the largest value). All inputs are fed at run time,
  also axes, sizes and other values that decide shapes. What numpy has no type for is float32, int8 or uint8 in and out.
- **refused**: the engine says in a sentence what it lacks. **Wrong**: a different result from the published one.
- Most cases exist twice: as they are, and *expanded* into the simpler operators that define the operator.

"""

_COLUMNS = (
    "operator",
    "opset",
    *("float32", "passed", "refused", "wrong"),
    *("other types", "passed", "refused", "wrong"),
    "why float32 cases are refused",
)

_REASONS = (
    (r"(\w+) node '[^']*' uses an operator the engine does not have.*", r"expanded by \1"),
    (r"computes in float32, but its input \d+ is (\w+).*", r"computes \1"),
    (r"(?:[Tt]he|its) input '[^']*' is (\w+); the engine takes.*", r"an input of \1"),
    (r"the graph promises the output.*", "another output than the first"),
    (r"[;.] .*|\.$|, which the engine.*|, but .*", ""),
    (r"\([\d, ]+\)", "(…)"),
)
"""What of a refusal becomes what on the page, one after the other."""


def page(verdicts: Sequence[Verdict]) -> str:
    """Return the text of the page for what became of all cases."""
    of_operator: dict[str, list[Verdict]] = {name: [] for name in sorted(SUPPORTED - OF_MICROSOFT - SEQUENCES.keys())}
    for verdict in verdicts:
        of_operator.setdefault(verdict.case.operator, []).append(verdict)
    head = _HEAD.format(version=onnx.__version__, oldest=OLDEST_OPSET)
    known = [_row(name, found) for name, found in of_operator.items() if name in SUPPORTED - SEQUENCES.keys()]
    total = _row("**all of them**", [v for v in verdicts if v.case.operator in SUPPORTED])
    rule = ("---", *["--:"] * (len(_COLUMNS) - 2), "---")
    return head + "".join((_line(_COLUMNS), _line(rule), *known, total, *_unknown(of_operator, verdicts)))


def _unknown(of_operator: dict[str, list[Verdict]], verdicts: Sequence[Verdict]) -> Iterator[str]:
    missing = {name: found for name, found in of_operator.items() if name not in SUPPORTED}
    yield "\n## Unsupported operators\n\n"
    yield "Operators of which every case is refused, with the number of their cases:\n"
    counted = ", ".join(f"{name} ({len(found)})" for name, found in sorted(missing.items()))
    yield textwrap.fill(f"{counted}.", 120, break_on_hyphens=False) + "\n"
    passed = sum(verdict.outcome == Outcome.PASSED for verdict in verdicts)
    yield "\n## Lists of tensors\n\n"
    yield textwrap.fill(
        f"{', '.join(sorted(SEQUENCES))} leave nothing but the tensors themselves: exporters write them for lists of a "
        "program. Most cases of theirs have lists as inputs or outputs of the network, which is refused; the tests "
        "compare them with ONNX Runtime inside networks.",
        120,
        break_on_hyphens=False,
    )
    yield "\n\n## Operators of ONNX Runtime\n\n"
    yield textwrap.fill(
        f"For quantized models, the engine also has of the domain `com.microsoft`: {', '.join(sorted(OF_MICROSOFT))}; "
        "their results are compared with ONNX Runtime's in the tests.",
        120,
        break_on_hyphens=False,
    )
    yield f"\n\nOf all {len(verdicts)} node cases of the standard, of all operators and types, {passed} pass.\n"


def _row(name: str, verdicts: Sequence[Verdict]) -> str:
    floats = [verdict for verdict in verdicts if verdict.case.is_float32]
    others = [verdict for verdict in verdicts if not verdict.case.is_float32]
    opsets = sorted({verdict.case.opset for verdict in verdicts})
    span = f"{opsets[0]}–{opsets[-1]}" if len(opsets) > 1 else "".join(map(str, opsets))
    in_floats, in_others = (Counter(verdict.outcome for verdict in part) for part in (floats, others))
    cells = (
        name,
        span,
        len(floats),
        in_floats[Outcome.PASSED],
        in_floats[Outcome.REFUSED],
        in_floats[Outcome.WRONG],
        len(others),
        in_others[Outcome.PASSED],
        in_others[Outcome.REFUSED],
        in_others[Outcome.WRONG],
        "" if name.startswith("*") else _reasons(floats),
    )
    return _line(cells)


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def _reasons(verdicts: Sequence[Verdict]) -> str:
    """Return the most frequent reasons for refusals in few words, with how often each occurs."""
    counted = Counter(_in_few_words(verdict.reason) for verdict in verdicts if verdict.outcome == Outcome.REFUSED)
    return ", ".join(f"{reason} ({count})" for reason, count in counted.most_common(3))


def _in_few_words(reason: str) -> str:
    words = re.sub(r"^.* cannot be loaded: ", "", reason)
    for pattern, replacement in _REASONS:
        words = re.sub(pattern, replacement, words)
    return re.sub(r"^\w+ node '[^']*' ", "", words).replace("|", "\\|")


def main() -> int:
    """Write the page; returns 1 where the engine answered a case wrongly."""
    with tempfile.TemporaryDirectory() as folder:
        verdicts = list(run_cases(load_cases(), Path(folder)))
    _PAGE.write_text(page(verdicts), encoding="utf-8")
    wrong = [verdict for verdict in verdicts if verdict.outcome == Outcome.WRONG]
    for verdict in wrong:
        print(f"{verdict.case.name}: {verdict.reason}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
