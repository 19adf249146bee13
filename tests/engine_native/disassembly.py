"""Innermost loops in the disassembly of an object file, and what a register tile's inner loop may hold."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>.+)>:$")
_INSTRUCTION = re.compile(r"^\s*(?P<address>[0-9a-f]+):\s+(?:\{vex\} )?(?P<mnemonic>[a-z][\w.]*)\s*(?P<operands>[^#]*)")
_X86_JUMP = re.compile(r"^(j[a-z]+)$")
_ARM_JUMP = re.compile(r"^(b|b\.[a-z]+|cbn?z|tbn?z)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One line: where it lies, what it does, on what."""

    address: int
    mnemonic: str
    operands: str

    def target(self) -> int | None:
        """Return where a jump goes; None for everything else."""
        if not (_X86_JUMP.match(self.mnemonic) or _ARM_JUMP.match(self.mnemonic)):
            return None
        found = re.search(r"(?:^|,|\s)(?:0x)?([0-9a-f]+)\s+<", self.operands)
        return int(found[1], 16) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What one turn of an innermost loop does.

    Attributes:
        multiplications: vector multiplications, of which most tiers make one with the addition.
        fused: those of them that add too.
        additions: vector additions apart.
        loads: reads of memory, prefetches not counted; a pair is two.
        stores: writes of vectors to memory.
        stack: accesses relative to the stack pointer: spilled registers.
    """

    multiplications: int
    fused: int
    additions: int
    loads: int
    stores: int
    stack: int


def functions(objdump: str, path: Path) -> dict[str, list[Instruction]]:
    """Return the instructions of every function of an object file, by its demangled name without arguments."""
    command = [objdump, "--disassemble", "--demangle", "--no-show-raw-insn", "--wide", path]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if start := _FUNCTION.match(line):
            current = found.setdefault(_short(start["name"]), [])
        elif one := _INSTRUCTION.match(line):
            current.append(
                Instruction(address=int(one["address"], 16), mnemonic=one["mnemonic"], operands=one["operands"].strip())
            )
    return found


def _short(name: str) -> str:
    """Return ``conv_tile<4, 6>`` of ``void powerlab::engine::avx512::conv_tile<4, 6>(...)``."""
    found = re.search(r"(\w+(?:<[^()]*>)?)\(", name)
    return found[1] if found else name


def innermost(instructions: list[Instruction], mnemonic: str = "") -> list[list[Instruction]]:
    """Return the bodies of the loops that hold no other: from where a jump back lands to that jump.

    With a mnemonic, of those loops alone that hold such an instruction.
    """
    spans, wanted = [], [one.address for one in instructions if one.mnemonic.startswith(mnemonic)]
    for one in instructions:
        target = one.target()
        jumps_back = target is not None and instructions[0].address <= target <= one.address
        if jumps_back and any(target <= address <= one.address for address in wanted):
            spans.append((target, one.address))
    inner = [a for a in spans if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in spans)]
    return [[one for one in instructions if begin <= one.address <= end] for begin, end in inner]


def x86_loop(body: list[Instruction]) -> Loop:
    """Count what a loop in AT&T syntax does."""
    counts: Counter[str] = Counter()
    for one in body:
        name, operands = one.mnemonic, one.operands
        memory = bool(re.search(r"\(,?%", operands)) and not name.startswith(("lea", "nop", "prefetch"))
        written = memory and operands.endswith(")") and not name.startswith(("cmp", "test"))
        fused = bool(re.match(r"vfn?m(add|sub)\w*ps", name))
        counts["fused"] += fused
        counts["multiplications"] += fused or bool(re.match(r"v?mulps", name))
        counts["additions"] += bool(re.match(r"v?addps", name))
        counts["loads"] += memory and not written
        counts["stores"] += written and bool(re.match(r"v?mov[au]p", name))
        counts["stack"] += memory and bool(re.search(r"\(%[re]sp|\(%rbp", operands))
    return _loop(counts)


def arm_loop(body: list[Instruction]) -> Loop:
    """Count what a loop of 64-bit Arm does."""
    counts: Counter[str] = Counter()
    for one in body:
        name, operands = one.mnemonic, one.operands
        fused = name in ("fmla", "fmls")
        counts["fused"] += fused
        counts["multiplications"] += fused or (name == "fmul" and ".4s" in operands)
        counts["additions"] += name == "fadd" and ".4s" in operands
        counts["loads"] += name.startswith("ld") and (2 if name.startswith("ldp") else 1)
        counts["stores"] += name.startswith("st") and bool(re.match(r"[qv{]", operands))
        counts["stack"] += "[sp" in operands
    return _loop(counts)


def products(body: list[Instruction], mnemonic: str) -> tuple[int, int]:
    """Return how many instructions whose names match a loop has, and how often it touches the stack.

    rbp is a register like others but where it points at the frame, below which everything then lies.
    """
    named = sum(bool(re.fullmatch(mnemonic, one.mnemonic)) for one in body)
    stack = re.compile(r"\(%[re]sp|-0x[0-9a-f]+\(%rbp|\[sp")
    return named, sum(bool(stack.search(one.operands)) for one in body)


def _loop(counts: Counter[str]) -> Loop:
    return Loop(
        multiplications=counts["multiplications"],
        fused=counts["fused"],
        additions=counts["additions"],
        loads=counts["loads"],
        stores=counts["stores"],
        stack=counts["stack"],
    )
