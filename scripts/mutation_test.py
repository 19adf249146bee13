"""Mutation-test modules that decide figures: how many small faults do their own tests notice?

Usage: ``make mutation [MODULES="MODULE_PATH ..."]`` (default: every module of :data:`MODULES`). Faults are made by
Cosmic Ray's operators, one at a time and in memory only: a forked child imports the changed module in place of the file
and runs the module's tests. A mutant is killed if a test fails, or if the tests take a minute; it survives if all pass.
Mutants that differ in annotations alone are equal to the original when they run and are not counted.

The exit status is 1 if fewer than 90 % of a module's mutants are killed.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.abc
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import cosmic_ray.plugins
import hypothesis  # noqa: F401 - imported before forking, so that no child spends time on it
import numpy  # noqa: F401
import pytest
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parent.parent
WANTED_PERCENT = 90.0
TIMEOUT_S = 60
_PYTEST = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")

MODULES = {
    "powerlab/domain/coverage.py": ("tests/domain/test_coverage_factor.py",),
    "powerlab/domain/budget.py": ("tests/domain/test_budget.py",),
    "powerlab/measure/percentiles/early_stopping.py": ("tests/measure/percentiles/test_early_stopping.py",),
    "powerlab/measure/energy/between_samples.py": ("tests/measure/energy/test_between_samples.py",),
    "powerlab/analysis/summary.py": ("tests/analysis/test_summary.py", "tests/analysis/test_point_budget.py"),
}
"""Each module with the test files that are meant to pin it down."""


@dataclass(frozen=True)
class Mutant:
    """One changed source: which operator changed it, where, and the result."""

    operator: str
    line: int
    source: str


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from changed source instead of its file."""

    def __init__(self, name: str, source: str, path: Path) -> None:
        self._name, self._source, self._path = name, source, path

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        return importlib.util.spec_from_loader(fullname, self) if fullname == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        exec(compile(self._source, str(self._path), "exec"), module.__dict__)  # noqa: S102 - that is what mutants are for


class _WithoutAnnotations(ast.NodeTransformer):
    """Removes what has no effect when the module runs, as annotations are not evaluated."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = ast.Constant(None)
        self.generic_visit(node)
        return node


def _meaning(source: str) -> str:
    return ast.dump(_WithoutAnnotations().visit(ast.parse(source)))


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module whose code differs from the original."""
    source = path.read_text(encoding="utf-8")
    seen = {_meaning(source)}
    tree = get_ast_from_path(path)
    for name in sorted(cosmic_ray.plugins.operator_names()):
        kind = cosmic_ray.plugins.get_operator(name)
        if kind.arguments():
            continue
        operator = kind()
        places = [place for node in ast_nodes(tree) for place in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            changed = mutate_code(source, operator, occurrence)
            with contextlib.suppress(SyntaxError):
                if changed is not None and (meaning := _meaning(changed)) not in seen:
                    seen.add(meaning)
                    yield Mutant(name, start[0], changed)


def survives(module: str, mutant: Mutant, path: Path, tests: Sequence[str]) -> bool:
    """Run the tests over one mutant in a child process and return whether all of them passed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(TIMEOUT_S)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            sys.meta_path.insert(0, _Changed(module, mutant.source, path))
            status = int(pytest.main([*_PYTEST, *tests]) != 0)
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _test(relative: str, tests: Sequence[str]) -> bool:
    path, module = ROOT / relative, relative.removesuffix(".py").replace("/", ".")
    original = Mutant("original", 0, path.read_text(encoding="utf-8"))
    if not survives(module, original, path, tests):
        print(f"{relative}: its tests fail on the original; fix that first", file=sys.stderr)
        return False
    started, count, left = time.monotonic(), 0, []
    for mutant in mutants(path):
        count += 1
        if survives(module, mutant, path, tests):
            left.append(mutant)
            lines = mutant.source.splitlines()
            print(
                f"  survived: {relative}:{mutant.line} {mutant.operator}: {lines[mutant.line - 1].strip()}", flush=True
            )
    killed = count - len(left)
    percent = 100 * killed / max(count, 1)
    print(
        f"{relative}: {killed} of {count} mutants killed, {percent:.1f} % ({time.monotonic() - started:.0f} s)",
        flush=True,
    )
    return percent >= WANTED_PERCENT


def main(arguments: Sequence[str]) -> int:
    """Test the modules that are named, or all of them."""
    os.chdir(ROOT)
    unknown = [name for name in arguments if name not in MODULES]
    if unknown:
        print(f"{unknown[0]} is not in MODULES of {Path(__file__).name}", file=sys.stderr)
        return 2
    results = [_test(name, MODULES[name]) for name in arguments or MODULES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
