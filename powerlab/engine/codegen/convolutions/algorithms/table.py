"""The algorithms for convolutions: a new one is a file of this package and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.engine.codegen.convolutions.algorithms.algorithm import Algorithm
from powerlab.engine.codegen.convolutions.algorithms.depthwise import DepthwiseConvolution
from powerlab.engine.codegen.convolutions.algorithms.direct import DirectConvolution
from powerlab.engine.codegen.convolutions.algorithms.direct_pairs import PairConvolution
from powerlab.engine.codegen.convolutions.algorithms.folded import FoldedConvolution
from powerlab.engine.codegen.convolutions.algorithms.grouped import GroupedConvolution
from powerlab.engine.codegen.convolutions.algorithms.interleaved import InterleavedConvolution
from powerlab.engine.codegen.convolutions.algorithms.interleaved_pairs import InterleavedPairConvolution
from powerlab.engine.codegen.convolutions.algorithms.point import PointConvolution
from powerlab.engine.codegen.convolutions.algorithms.preactivated import PreactivatedConvolution
from powerlab.engine.codegen.convolutions.algorithms.winograd import WinogradConvolution
from powerlab.engine.target.tiers import BF16, FP16

_WINOGRAD_4 = WinogradConvolution(tile=4, input_transform_cycles=230, output_transform_cycles=180)

_ALL: tuple[Algorithm, ...] = (
    InterleavedConvolution(),
    PointConvolution(),
    DirectConvolution(),
    WinogradConvolution(tile=2, input_transform_cycles=70, output_transform_cycles=50),
    _WINOGRAD_4,
    WinogradConvolution(tile=6, input_transform_cycles=400, output_transform_cycles=380),
    WinogradConvolution(tile=4, kernel=5, input_transform_cycles=460, output_transform_cycles=360),
    FoldedConvolution(inner=_WINOGRAD_4),
    DepthwiseConvolution(),
    GroupedConvolution(),
    PreactivatedConvolution(),
    InterleavedPairConvolution(),
    PairConvolution(BF16),
    PairConvolution(FP16),
)
"""Where two are expected to take equally long, the one that comes first here is taken."""

ALGORITHMS: Mapping[str, Algorithm] = {algorithm.name: algorithm for algorithm in _ALL}
