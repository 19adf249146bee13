"""What the compiler made of the register tiles: nothing spilled, nothing loaded twice, one multiply-add a product."""

import platform
import re
from pathlib import Path

import pytest

from engine_native.disassembly import Instruction, Loop, arm_loop, functions, innermost, products, x86_loop
from engine_native.kernel_program import X86_TIERS, byte_object, pair_object, tier_object
from powerlab.engine.target.tiers import available_tiers
from requires import LACKED, require_program

UNFUSED = ("sse4",)
"""Tiers whose processors cannot multiply and add at once."""


def instructions(text, first=0):
    lines = (line.strip().partition(" ") for line in text.strip().splitlines())
    return [
        Instruction(address=first + i, mnemonic=mnemonic, operands=operands.strip())
        for i, (mnemonic, _, operands) in enumerate(lines)
    ]


def conv_tiles(objdump, path, kinds="tile|point"):
    """Return (blocks, pixels) → innermost loops that multiply."""
    count = arm_loop if "aarch64" in Path(objdump).name else x86_loop
    found = {}
    for name, body in functions(objdump, path).items():
        if tile := re.fullmatch(rf"conv_(?:{kinds})<(\d+), (\d+), \d+>", name):
            loops = [count(loop) for loop in innermost(body)]
            multiplying = [loop for loop in loops if loop.multiplications]
            found.setdefault((int(tile[1]), int(tile[2])), []).extend(multiplying)
    return found


def check(tier, tiles, *, fused=True):
    assert tiles, f"{tier} has no register tiles"
    for (blocks, pixels), loops in tiles.items():
        what = f"{tier} {blocks}x{pixels}: {loops}"
        summing = [loop for loop in loops if loop.fused or not fused]  # else the loop that applies the activation
        assert summing, what
        for loop in summing:
            lanes, rest = divmod(loop.multiplications, blocks * pixels)
            assert rest == 0, what
            # One of the addresses of a long tile of whole blocks, which has no loop inside, may lie on the stack.
            addresses = int(lanes >= 8 and blocks == 1)
            assert loop.stores == 0, what
            assert loop.stack <= addresses, what
            assert loop.loads <= lanes * (blocks + pixels) + addresses, what
            if fused:
                assert (loop.fused, loop.additions) == (loop.multiplications, 0), what
            else:
                assert (loop.fused, loop.additions) == (0, loop.multiplications), what


@pytest.fixture
def x86_folder(request):
    if platform.machine() != "x86_64":
        pytest.skip(f"{LACKED} kernels of x86-64")
    return request.getfixturevalue("kernels").parent


@pytest.mark.campaign
@pytest.mark.parametrize("tier", X86_TIERS)
def test_register_tiles_of_x86(x86_folder, tier):
    # Where the loop of a short point is unrolled, the one around it is innermost, and multiplies by the slope, too.
    kinds = "tile" if tier in UNFUSED else "tile|point"
    tiles = conv_tiles(require_program("objdump", "binutils"), tier_object(x86_folder, tier), kinds)
    check(tier, tiles, fused=tier not in UNFUSED)
    here = {one.name: one for one in available_tiers()}
    if tier in here:
        assert max(tiles) == max((one.tile_blocks, one.tile_pixels) for one in here[tier].tiles())


@pytest.mark.campaign
def test_sums_of_depthwise_rows_stay_in_sixteen_registers(x86_folder):
    found = functions(require_program("objdump", "binutils"), tier_object(x86_folder, "avx2"))
    tiles = {name: body for name, body in found.items() if name.startswith("depthwise_square<")}
    assert len(tiles) > 40, sorted(tiles)
    for name, body in tiles.items():
        kernel, _, pixels = (int(number) for number in re.findall(r"\d+", name.partition("Pixels")[2]))
        multiplied, spilled = products(body, r"vfmadd\d+ps")
        assert multiplied % (kernel * pixels) == 0, name
        assert spilled == 0, name


@pytest.mark.campaign
@pytest.mark.parametrize("tier", X86_TIERS)
def test_sums_of_an_lstm_stay_in_registers(x86_folder, tier):
    found = functions(require_program("objdump", "binutils"), tier_object(x86_folder, tier))
    tiles = {
        name: body for name, body in found.items() if re.fullmatch(r"lstm_tile<(?:\w+::)*FloatWeights, \d+>", name)
    }
    assert tiles, f"{tier} has no tiles of an LSTM"
    for name, body in tiles.items():
        loops = [loop for loop in map(x86_loop, innermost(body)) if loop.multiplications and not loop.stores]
        assert loops, name
        for loop in loops:
            assert loop.stack == 0, f"{tier} {name}: {loop}"
            assert (loop.additions if tier in UNFUSED else loop.fused) == loop.multiplications, f"{tier} {name}: {loop}"


@pytest.mark.campaign(minutes=2)
def test_register_tiles_of_64_bit_arm(arm_kernels):
    objdump = require_program("aarch64-linux-gnu-objdump", "binutils-aarch64-linux-gnu")
    check("neon", conv_tiles(objdump, tier_object(arm_kernels.parent, "neon")))


BYTE_PRODUCTS = {
    "avx512vnni": ("vpdpbusd", 1),
    "avx512bytes": ("vpmaddwd", 2),
    "avxvnni": ("vpdpbusd", 1),
    "avx2bytes": ("vpmaddwd", 2),
    "sse4bytes": ("pmaddwd", 2),
}
"""Instruction set of kernels on bytes → the instruction that multiplies, and how many of them a word takes."""


NARROW = {"avx512bytes": "vpmaddubsw", "avx2bytes": "vpmaddubsw", "sse4bytes": "pmaddubsw"}
"""Of these, what multiplies narrow weights, once a word."""


def check_bytes(objdump, path, mnemonic, a_word, *, narrow=1):
    """All words of a pixel's block are multiplied in one turn: nothing is spilled, nothing multiplied otherwise."""
    tiles = {
        (int(tile[1]), int(tile[2])): body
        for name, body in functions(objdump, path).items()
        if (tile := re.fullmatch(rf"byte_tile<false, {narrow}, (\d+), (\d+)>", name))
    }
    assert tiles, f"{path} has no register tiles"
    for (blocks, pixels), body in tiles.items():
        loops = [counts for loop in innermost(body) if (counts := products(loop, mnemonic))[0]]
        assert loops, f"{path} {blocks}x{pixels}"
        whole = [touched for count, touched in loops if count == 4 * a_word * blocks * pixels]
        assert whole, f"{path} {blocks}x{pixels}: {loops}"
        assert min(whole) == 0, f"{path} {blocks}x{pixels}: {loops}"


@pytest.mark.campaign
@pytest.mark.parametrize("instructions", BYTE_PRODUCTS)
def test_register_tiles_of_bytes(x86_folder, instructions):
    objdump, path = require_program("objdump", "binutils"), byte_object(x86_folder, instructions)
    check_bytes(objdump, path, *BYTE_PRODUCTS[instructions])
    if instructions in NARROW:
        for products in (2, 4):
            check_bytes(objdump, path, NARROW[instructions], 1, narrow=products)


@pytest.mark.campaign(minutes=2)
@pytest.mark.parametrize(("instructions", "mnemonic"), [("neonbytes", "sadalp"), ("neon_dotprod", "sdot")])
def test_register_tiles_of_bytes_on_64_bit_arm(arm_kernels, instructions, mnemonic):
    objdump = require_program("aarch64-linux-gnu-objdump", "binutils-aarch64-linux-gnu")
    check_bytes(objdump, byte_object(arm_kernels.parent, instructions), mnemonic, 1)


@pytest.mark.campaign
def test_tiles_of_amx(x86_folder):
    """Per run of words each tile of pixels and of weights is loaded once, and nothing else."""
    objdump = require_program("objdump", "binutils")
    check_amx(objdump, byte_object(x86_folder, "avx512amx"), "tdpbusd")
    check_amx(objdump, pair_object(x86_folder, "avx512amxbf16"), "tdpbf16ps")


def check_amx(objdump, path, mnemonic):
    """Of one tile of pixels all vectors' sums are made at once, of two those of two vectors."""
    found = functions(objdump, path).items()
    named = r"amx_tile<(?:true|false), (\d)>"
    tiles = {name: (int(tile[1]), body) for name, body in found if (tile := re.fullmatch(named, name))}
    assert len(tiles) == 8, tiles.keys()
    for name, (vectors, body) in tiles.items():
        seen = set()
        for loop in innermost(body, mnemonic):  # they hold one that prefetches
            others = [one for one in loop if one.mnemonic != "tileloadd"]  # of which one reads by way of %rbp
            seen.add((*products(others, mnemonic), len(loop) - len(others)))
        two_tiles = {(4, 0, 4)} if vectors > 1 else set()
        odd_vector = {(2, 0, 3)} if vectors % 2 else set()
        assert seen == {(vectors, 0, vectors + 1), *two_tiles, *odd_vector}, name


@pytest.mark.campaign(minutes=2)
def test_matrices_of_bytes_on_64_bit_arm(arm_kernels):
    """Of a whole block each two pixels take two multiplications for each two outputs, and nothing is spilled."""
    objdump = require_program("aarch64-linux-gnu-objdump", "binutils-aarch64-linux-gnu")
    tiles = {
        (int(tile[1]), int(tile[2])): body
        for name, body in functions(objdump, byte_object(arm_kernels.parent, "neon_i8mm")).items()
        if (tile := re.fullmatch(r"byte_tile<false, 1, (\d+), (\d+)>", name))
    }
    assert max(tiles) == (4, 6)
    for (vectors, pixels), body in tiles.items():
        loops = [products(loop, "smmla") for loop in innermost(body)]
        assert (2 * 2 * vectors * -(-pixels // 2), 0) in loops, f"{vectors}x{pixels}: {loops}"


def check_pairs(objdump, path, mnemonic, names=r"pair_tile<(?:true|false), (\d+), (\d+)>", steps=4):
    """Four words are multiplied in one turn: nothing is spilled."""
    tiles = {
        name: (int(tile[1]), int(tile[2]), body)
        for name, body in functions(objdump, path).items()
        if (tile := re.fullmatch(names, name))
    }
    assert tiles, f"{path} has no register tiles"
    for name, (blocks, pixels, body) in tiles.items():
        loops = [counts for loop in innermost(body) if (counts := products(loop, mnemonic))[0]]
        assert (steps * blocks * pixels, 0) in loops, f"{path} {name}: {loops}"


@pytest.mark.campaign
def test_register_tiles_of_bfloat16(x86_folder):
    objdump = require_program("objdump", "binutils")
    check_pairs(objdump, pair_object(x86_folder, "avx512bf16"), "vdpbf16ps")


@pytest.mark.campaign(minutes=2)
def test_register_tiles_of_bfloat16_on_64_bit_arm(arm_kernels):
    objdump = require_program("aarch64-linux-gnu-objdump", "binutils-aarch64-linux-gnu")
    check_pairs(objdump, pair_object(arm_kernels.parent, "neon_bf16"), "bfdot")


HALF_TILES = {"names": r"half_tile<(\d+), (\d+)>", "steps": 8}
"""Four words are eight channels, one instruction each."""


@pytest.mark.campaign
def test_register_tiles_of_float16(x86_folder):
    objdump = require_program("objdump", "binutils")
    check_pairs(objdump, pair_object(x86_folder, "avx512fp16"), "vfmadd...ph", **HALF_TILES)


@pytest.mark.campaign(minutes=2)
def test_register_tiles_of_float16_on_64_bit_arm(arm_kernels):
    objdump = require_program("aarch64-linux-gnu-objdump", "binutils-aarch64-linux-gnu")
    check_pairs(objdump, pair_object(arm_kernels.parent, "neon_fp16"), "fmla", **HALF_TILES)


SPILLING = """
 xor %eax,%eax
 vmovaps (%rdx),%zmm1
 vbroadcastss 0x4(%rax,%rbx,4),%zmm2
 vfmadd231ps %zmm2,%zmm1,%zmm4
 vmovaps %zmm4,0x40(%rsp)
 vfmadd231ps (%rdi){1to16},%zmm1,%zmm5
 prefetcht1 (%rsi)
 lea 0x4(%rax,%r15,1),%r14
 cmp %r10,%rdx
 jne 1 <conv_tile<1, 2, 0>(ConvTile const&)+0x1>
 ret
"""


def test_the_judge_counts_what_a_loop_does():
    (body,) = innermost(instructions(SPILLING))
    assert [one.mnemonic for one in body][::8] == ["vmovaps", "jne"]
    assert x86_loop(body) == Loop(multiplications=2, fused=2, additions=0, loads=3, stores=1, stack=1)
    with pytest.raises(AssertionError, match="avx512 1x2"):
        check("avx512", {(1, 2): [x86_loop(body)]})


def test_the_judge_counts_what_a_loop_of_arm_does():
    (body,) = innermost(
        instructions("""
 ldp q0, q1, [x1], #32
 ldr q2, [x2]
 fmla v3.4s, v0.4s, v2.s[0]
 fmla v4.4s, v1.4s, v2.s[0]
 str q3, [sp, #16]
 prfm pldl2keep, [x3]
 b.ne 0 <conv_tile<2, 1, 1>(ConvTile const&)>
""")
    )
    assert arm_loop(body) == Loop(multiplications=2, fused=2, additions=0, loads=3, stores=1, stack=1)


def test_only_loops_that_hold_no_other_are_looked_at():
    nested = instructions("""
 mov %rax,%rbx
 mulps %xmm0,%xmm1
 addps %xmm0,%xmm1
 jl 1 <f+0x1>
 add %rax,%rbx
 jmp 0 <f>
""")
    (body,) = innermost(nested)
    assert [one.address for one in body] == [1, 2, 3]
    assert x86_loop(body) == Loop(multiplications=1, fused=0, additions=1, loads=0, stores=0, stack=0)
