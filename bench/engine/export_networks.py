"""Write networks that nobody tuned the engine for as ONNX files: from timm, torchvision, transformers, and small ones.

    python -m venv build/networks-venv
    build/networks-venv/bin/pip install torch torchvision timm transformers onnx
    build/networks-venv/bin/python -m bench.engine.export_networks build/networks
    python -m bench.engine.vs_peers build/networks/*.onnx --peers onnxruntime openvino --seconds 2

`make bench-networks` does all of it. Weights are random, batch 1, opset 17, sizes fixed. Networks in ``HELD_BACK`` are
written only with ``--held-back``: nobody looks at them while the engine is worked on, so that they tell how it fares
elsewhere. ``--more`` writes those of ``more_networks.py`` instead, ``--detectors`` those of ``detectors.py``.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.engine.detectors import detectors
from bench.engine.more_networks import more_networks

TIMM = (
    *("convmixer_768_32", "convnext_atto", "convnextv2_atto", "crossvit_tiny_240", "cspdarknet53", "cspresnet50"),
    *("deit_tiny_patch16_224", "densenet121", "dla34", "dpn68", "edgenext_xx_small", "efficientformer_l1"),
    *("efficientnet_b0", "efficientvit_b0", "fbnetc_100", "gernet_s", "ghostnet_100", "gmlp_s16_224"),
    *("hardcorenas_a", "hrnet_w18_small", "inception_v3", "lcnet_100", "levit_128", "mixer_s16_224", "mnasnet_100"),
    *("mobilenetv3_large_100", "mobilenetv3_small_100", "mobilenetv4_conv_small", "mobileone_s1", "mobilevit_xs"),
    *("mobilevitv2_050", "poolformer_s12", "pvt_v2_b0", "regnetx_008", "regnety_004", "repvgg_a0", "res2net50_26w_4s"),
    *("resmlp_12_224", "resnest14d", "resnext50_32x4d", "rexnet_100", "selecsls42b", "semnasnet_075", "seresnet50"),
    *("skresnet18", "swin_tiny_patch4_window7_224", "tf_efficientnet_lite0", "tinynet_a", "vgg11_bn"),
    *("vit_tiny_patch16_224", "xcit_nano_12_p16_224"),
)
SEGMENTERS = ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large")
CLASSIFIERS = ("googlenet", "shufflenet_v2_x1_0", "squeezenet1_1")
HELD_BACK = (
    *("botnet26t_256", "coat_lite_mini", "efficientnetv2_rw_t", "fastvit_t8", "hardcorenas_d", "nfnet_l0"),
    *("mobilenetv2_050", "poolformerv2_s12", "regnetz_b16", "repghostnet_100", "sequencer2d_s", "tiny_vit_5m_224"),
)


class UNet(nn.Module):
    """A small segmenter: two scales, transposed convolutions, skips."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.middle = _pair(3, 32), _pair(32, 64), _pair(64, 128)
        self.up = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)])
        self.back = nn.ModuleList([_pair(128, 64), _pair(64, 32)])
        self.last = nn.Conv2d(32, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(N, 3, H, W) to (N, 4, H, W)."""
        first = self.first(x)
        second = self.second(nn.functional.max_pool2d(first, 2))
        y = self.middle(nn.functional.max_pool2d(second, 2))
        for up, back, skipped in zip(self.up, self.back, (second, first), strict=True):
            y = back(torch.cat((up(y), skipped), 1))
        return self.last(y)


def _pair(inputs: int, outputs: int) -> nn.Sequential:
    layers = (nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())
    return nn.Sequential(*layers, nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


def _super_resolution() -> nn.Module:
    """Return ESPCN: convolutions at the small size, pixel shuffle at the end."""
    body = (nn.Conv2d(3, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh())
    return nn.Sequential(*body, nn.Conv2d(32, 12, 3, padding=1), nn.PixelShuffle(2))


def _sound() -> nn.Module:
    """Return dilated depthwise convolutions over time, as separators and keyword spotters have them."""
    layers: list[nn.Module] = [nn.Conv1d(1, 128, 16, 8)]
    for power in range(8):
        layers += [nn.Conv1d(128, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256)]
        layers += [nn.Conv1d(256, 256, 3, padding=2**power, dilation=2**power, groups=256), nn.PReLU()]
        layers += [nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1)]
    return nn.Sequential(*layers)


class PointNet(nn.Module):
    """Points by themselves, then the largest of each feature."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 64, 64, 128, 1024)
        pairs = itertools.pairwise(widths)
        self.each = nn.Sequential(*(m for a, b in pairs for m in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())))
        self.all = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 40))

    def forward(self, x: Tensor) -> Tensor:
        """(N, 3, points) to (N, 40)."""
        return self.all(self.each(x).amax(2))


class Recurrent(nn.Module):
    """Two layers of a recurrent network and a linear one."""

    def __init__(self, kind: type[nn.GRU | nn.LSTM]) -> None:
        super().__init__()
        self.body, self.last = kind(80, 128, 2, batch_first=True), nn.Linear(128, 40)

    def forward(self, x: Tensor) -> Tensor:
        """(N, steps, 80) to (N, steps, 40)."""
        return self.last(self.body(x)[0])


class LastHidden(nn.Module):
    """What a transformer of transformers makes of its last layer: the other arguments it takes confuse the exporter."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        """(N, tokens) or (N, samples) to (N, steps, features)."""
        mask = None if x.is_floating_point() else torch.ones_like(x)  # else it looks for where sequences begin
        return self.body(x, attention_mask=mask).last_hidden_state


def _transformer(kind: str) -> nn.Module:
    import transformers as hf

    small = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    if kind == "bert":
        return LastHidden(hf.BertModel(hf.BertConfig(vocab_size=1000, **small), add_pooling_layer=False))
    if kind == "gpt2":
        config = hf.GPT2Config(vocab_size=1000, n_embd=256, n_layer=4, n_head=4, use_cache=False)
        return LastHidden(hf.GPT2Model(config))
    return hf.Wav2Vec2Model(hf.Wav2Vec2Config(**small, conv_dim=(64,) * 7, num_conv_pos_embeddings=16))


IMAGE = (1, 3, 224, 224)
Made = tuple[Callable[[], nn.Module], tuple[int, ...]]


def networks() -> dict[str, Made]:
    """Return name -> what makes the network, and the shape of its input; int64 where that is two axes long."""
    import timm
    import torchvision

    found: dict[str, Made] = {}
    for name in (*TIMM, *HELD_BACK):
        size = {"botnet26t_256": 256, "crossvit_tiny_240": 240, "inception_v3": 299}.get(name, 224)
        found[name] = (lambda name=name: timm.create_model(name, pretrained=False), (1, 3, size, size))
    for name in SEGMENTERS:
        make = getattr(torchvision.models.segmentation, name)
        found[name] = (lambda make=make: make(weights=None, weights_backbone=None), (1, 3, 256, 256))
    for name in CLASSIFIERS:
        make = getattr(torchvision.models, name)
        found[name] = (lambda make=make: make(weights=None), IMAGE)
    found |= {
        "unet": (UNet, (1, 3, 128, 128)),
        "espcn": (_super_resolution, (1, 3, 180, 180)),
        "dilated_sound": (_sound, (1, 1, 8000)),
        "pointnet": (PointNet, (1, 3, 1024)),
        "gru": (lambda: Recurrent(nn.GRU), (1, 50, 80)),
        "lstm": (lambda: Recurrent(nn.LSTM), (1, 50, 80)),
        "bert_small": (lambda: _transformer("bert"), (1, 64)),
        "gpt2_small": (lambda: _transformer("gpt2"), (1, 64)),
        "wav2vec2_small": (lambda: _transformer("wav2vec2"), (1, 16000)),
    }
    return found


def write(name: str, made: Made, folder: Path) -> None:
    """Write one network."""
    make, shape = made
    torch.manual_seed(0)
    network = make().eval()
    whole = len(shape) == 2 and shape[1] < 1000
    x: Any = torch.ones(shape, dtype=torch.int64) if whole else torch.randn(shape)
    with torch.no_grad():
        torch.onnx.export(network, (x,), str(folder / f"{name}.onnx"), opset_version=17, dynamo=False)


def main() -> int:
    """Write all networks; one that cannot be exported is named, and the others are written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--held-back", action="store_true", help="write those that are held back, and only those")
    which.add_argument("--more", action="store_true", help="write more networks, and only those")
    which.add_argument("--detectors", action="store_true", help="write detectors, and only those")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    failed = 0
    chosen = more_networks() if args.more else detectors() if args.detectors else networks()
    for name, made in chosen.items():
        if (name in HELD_BACK) != args.held_back or (args.folder / f"{name}.onnx").exists():
            continue
        try:
            write(name, made, args.folder)
        except Exception as error:  # what other packages raise, so that one network does not cost the others
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    print(f"{len(list(args.folder.glob('*.onnx')))} networks in {args.folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
