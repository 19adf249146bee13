"""More networks for :mod:`bench.engine.export_networks`: 135 of other families, volumes and sounds among them.

They were chosen when the engine was done with the first 66, so that what it is slow or wrong at is not one network's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

TIMM = (
    *("bat_resnext26ts", "caformer_s18", "cait_xxs24_224", "coat_tiny", "coatnet_nano_rw_224", "convformer_s18"),
    *("convit_tiny", "convnext_femto_ols", "crossvit_9_240", "cs3darknet_s", "davit_tiny", "densenetblur121d"),
    *("dla46x_c", "dm_nfnet_f0", "dpn48b", "eca_botnext26ts_256", "eca_nfnet_l0", "ecaresnet26t", "edgenext_x_small"),
    *("efficientformerv2_s0", "efficientnet_es", "efficientvit_m0", "ese_vovnet19b_dw", "fastvit_mci0"),
    *("focalnet_tiny_srf", "gcresnet33ts", "gcvit_xxtiny", "gernet_m", "ghostnetv2_100", "ghostnetv3_100"),
    *("gmixer_24_224", "hgnet_tiny", "hgnetv2_b0", "hiera_tiny_224", "hrnet_w18_small_v2", "inception_next_atto"),
    *("inception_v4", "lambda_resnet26rpt_256", "lambda_resnet26t", "lcnet_050", "legacy_seresnet18"),
    *("legacy_xception", "levit_conv_128s", "mambaout_femto", "maxvit_rmlp_pico_rw_256", "mixnet_s"),
    *("mobilenet_edgetpu_v2_xs", "mobilenetv1_100", "mobilenetv3_rw", "mobilenetv4_hybrid_medium", "mobileone_s0"),
    *("mobilevitv2_075", "mvitv2_tiny", "nest_tiny", "nextvit_small", "pit_ti_224", "poolformer_s24", "rdnet_tiny"),
    *("regnetx_002", "regnety_002", "regnetz_c16", "repvgg_b0", "repvit_m0_9", "res2next50", "resnetblur50"),
    *("resnetrs50", "resnetv2_50", "seresnext26d_32x4d", "shvit_s1", "skresnext50_32x4d", "spnasnet_100"),
    *("starnet_s1", "swiftformer_xs", "swinv2_cr_tiny_ns_224", "swinv2_tiny_window8_256", "tf_efficientnetv2_b0"),
    *("tinynet_c", "tnt_s_legacy_patch16_224", "tresnet_m", "twins_pcpvt_small", "twins_svt_small", "vgg13"),
    *("visformer_tiny", "vit_tiny_r_s16_p8_224", "vitamin_small_224", "vovnet39a", "wide_resnet50_2", "xception41p"),
)
_SIZES = dict.fromkeys(("inception_v4", "legacy_xception", "xception41p"), 299) | {"crossvit_9_240": 240}
_SIZES |= dict.fromkeys(("bat_resnext26ts", "eca_botnext26ts_256", "fastvit_mci0", "lambda_resnet26rpt_256"), 256)
_SIZES |= dict.fromkeys(("lambda_resnet26t", "maxvit_rmlp_pico_rw_256", "mobilevitv2_075"), 256)
_SIZES |= {"swinv2_tiny_window8_256": 256, "dm_nfnet_f0": 192}

_CLIP, _IMAGE, _TOKENS, _SOUND = (1, 3, 8, 112, 112), (1, 3, 224, 224), (1, 96), (1, 16000)

TORCHVISION: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("video.mc3_18", "video.r2plus1d_18", "video.r3d_18"), _CLIP),
    **dict.fromkeys(("convnext_tiny", "maxvit_t", "mnasnet1_3", "regnet_y_800mf", "shufflenet_v2_x0_5"), _IMAGE),
}

_WORDS: dict[str, Any] = {"vocab_size": 1000}
_HEADS: dict[str, Any] = {"num_attention_heads": 3, "intermediate_size": 768}
_SMALL: dict[str, Any] = {**_HEADS, "hidden_size": 192, "num_hidden_layers": 3}
_HEARD: dict[str, Any] = {**_SMALL, "conv_dim": (64,) * 7, "num_conv_pos_embeddings": 16}
_POSITIONS: dict[str, Any] = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
_DEPTH: dict[str, Any] = {"neck_hidden_sizes": [48, 96, 192, 192], "fusion_hidden_size": 96}

TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any], tuple[int, ...]]] = {
    "albert": ("AlbertModel", "AlbertConfig", {**_WORDS, **_SMALL, "embedding_size": 64}, _TOKENS),
    "ast": ("ASTModel", "ASTConfig", _SMALL, (1, 1024, 128)),
    "bloom": ("BloomModel", "BloomConfig", {**_WORDS, "hidden_size": 192, "n_layer": 3, "n_head": 3}, _TOKENS),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", {**_SMALL, "patch_size": 16}, _IMAGE),
    "convbert": (
        *("ConvBertModel", "ConvBertConfig"),
        {**_WORDS, **_SMALL, "embedding_size": 192, "num_attention_heads": 6},
        _TOKENS,
    ),
    "convnextv2": (
        *("ConvNextV2Model", "ConvNextV2Config"),
        {"depths": [2, 2, 4, 2], "hidden_sizes": [40, 80, 160, 320]},
        _IMAGE,
    ),
    "deberta2": ("DebertaV2Model", "DebertaV2Config", {**_WORDS, **_SMALL, **_POSITIONS}, _TOKENS),
    "dinov2": ("Dinov2Model", "Dinov2Config", {**_SMALL, "image_size": 224}, _IMAGE),
    "distilbert": (
        *("DistilBertModel", "DistilBertConfig"),
        {**_WORDS, "dim": 192, "n_layers": 3, "n_heads": 3, "hidden_dim": 768},
        _TOKENS,
    ),
    "dpt": (
        *("DPTForDepthEstimation", "DPTConfig"),
        {**_SMALL, **_DEPTH, "num_hidden_layers": 12},
        (1, 3, 384, 384),
    ),
    "electra": ("ElectraModel", "ElectraConfig", {**_WORDS, **_SMALL, "embedding_size": 64}, _TOKENS),
    "gemma": ("GemmaModel", "GemmaConfig", {**_WORDS, **_SMALL, "num_key_value_heads": 1, "head_dim": 64}, _TOKENS),
    "glpn": ("GLPNForDepthEstimation", "GLPNConfig", {}, (1, 3, 256, 256)),
    "gptneox": ("GPTNeoXModel", "GPTNeoXConfig", {**_WORDS, **_SMALL}, _TOKENS),
    "hubert": ("HubertModel", "HubertConfig", _HEARD, _SOUND),
    "levit": ("LevitModel", "LevitConfig", {}, _IMAGE),
    "llama": ("LlamaModel", "LlamaConfig", {**_WORDS, **_SMALL, "num_key_value_heads": 1}, _TOKENS),
    "mobilebert": ("MobileBertModel", "MobileBertConfig", {**_WORDS, "num_hidden_layers": 4}, _TOKENS),
    "mobilenetv1_ssd": ("MobileNetV1Model", "MobileNetV1Config", {"image_size": 300}, (1, 3, 300, 300)),
    "mpnet": ("MPNetModel", "MPNetConfig", {**_WORDS, **_SMALL}, _TOKENS),
    "opt": (
        *("OPTModel", "OPTConfig"),
        {**_WORDS, **_SMALL, "ffn_dim": 768, "word_embed_proj_dim": 192},
        _TOKENS,
    ),
    "pvt": ("PvtModel", "PvtConfig", {}, _IMAGE),
    "qwen2": ("Qwen2Model", "Qwen2Config", {**_WORDS, **_SMALL, "num_key_value_heads": 3}, _TOKENS),
    "regnet": (
        *("RegNetModel", "RegNetConfig"),
        {"hidden_sizes": [64, 128, 256, 512], "depths": [1, 2, 4, 1], "groups_width": 32},
        _IMAGE,
    ),
    "roberta": ("RobertaModel", "RobertaConfig", {**_WORDS, **_SMALL}, _TOKENS),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {}, (1, 3, 256, 256)),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", {**_WORDS, **_SMALL, "embedding_size": 192}, _TOKENS),
    "swin2sr": (
        *("Swin2SRForImageSuperResolution", "Swin2SRConfig"),
        {"image_size": 64, "embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6]},
        (1, 3, 64, 64),
    ),
    "t5enc": (
        *("T5EncoderModel", "T5Config"),
        {**_WORDS, "d_model": 192, "d_kv": 64, "d_ff": 512, "num_layers": 3, "num_heads": 3},
        _TOKENS,
    ),
    "videomae": (
        "VideoMAEModel",
        "VideoMAEConfig",
        {**_SMALL, "image_size": 112, "num_frames": 8},
        (1, 8, 3, 112, 112),
    ),
    "wavlm": ("WavLMModel", "WavLMConfig", _HEARD, _SOUND),
    "yolos": (
        *("YolosModel", "YolosConfig"),
        {**_SMALL, "image_size": [256, 256], "num_detection_tokens": 50},
        (1, 3, 256, 256),
    ),
}
"""Name → model, its configuration, what differs from the usual one, and the shape of the input."""


class _Output(nn.Module):
    """The first output of a model of transformers, which has a class of its own for them."""

    def __init__(self, kind: str, config: str, settings: dict[str, Any]) -> None:
        super().__init__()
        import transformers as hf

        causal = {"attn_implementation": "eager"} if kind.startswith(("Llama", "Qwen", "Gemma")) else {}
        self.body = getattr(hf, kind)(getattr(hf, config)(**settings, **causal))

    def forward(self, x: Tensor) -> Tensor:
        """(N, tokens), (N, samples) or an image to what the model makes of it."""
        more = {} if x.is_floating_point() else {"attention_mask": torch.ones_like(x)}
        return next(iter(self.body(x, **more).values()))


class _Residual(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same."""
        return x + self.layers(x)


def _denoiser() -> nn.Module:
    """Return DnCNN: convolutions of one size, the noise taken off at the end."""
    middle = (nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    body = (one for _ in range(10) for one in middle)
    return _Residual(nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), *body, nn.Conv2d(64, 1, 3, padding=1))


def _style() -> nn.Module:
    """Return a style transfer network: reflected edges, instance norms, and pixels repeated."""

    def convolve(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
        norm = nn.InstanceNorm2d(outputs, affine=True)
        return [nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel, stride), norm, nn.ReLU()]

    middle = [_Residual(*convolve(128, 128, 3), *convolve(128, 128, 3)[:3]) for _ in range(4)]
    down = [*convolve(3, 32, 9), *convolve(32, 64, 3, 2), *convolve(64, 128, 3, 2)]
    up = [nn.Upsample(scale_factor=2), *convolve(128, 64, 3), nn.Upsample(scale_factor=2), *convolve(64, 32, 3)]
    return nn.Sequential(*down, *middle, *up, nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9))


def _generator() -> nn.Module:
    """Return DCGAN's: transposed convolutions from one pixel on."""
    layers: list[nn.Module] = [nn.ConvTranspose2d(100, 512, 4), nn.BatchNorm2d(512), nn.ReLU()]
    for inputs in (512, 256, 128):
        layers += [nn.ConvTranspose2d(inputs, inputs // 2, 4, 2, 1), nn.BatchNorm2d(inputs // 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())


class _VolumeUNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def pair(inputs: int, outputs: int) -> nn.Sequential:
            sizes = ((inputs, outputs), (outputs, outputs))
            made = ((nn.Conv3d(a, b, 3, padding=1), nn.InstanceNorm3d(b), nn.LeakyReLU()) for a, b in sizes)
            return nn.Sequential(*(one for three in made for one in three))

        self.first, self.second, self.middle = pair(1, 16), pair(16, 32), pair(32, 64)
        self.up = nn.ModuleList([nn.ConvTranspose3d(64, 32, 2, 2), nn.ConvTranspose3d(32, 16, 2, 2)])
        self.back, self.last = nn.ModuleList([pair(64, 32), pair(32, 16)]), nn.Conv3d(16, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(N, 1, D, H, W) to (N, 3, D, H, W)."""
        first = self.first(x)
        second = self.second(nn.functional.max_pool3d(first, 2))
        y = self.middle(nn.functional.max_pool3d(second, 2))
        for up, back, skipped in zip(self.up, self.back, (second, first), strict=True):
            y = back(torch.cat((up(y), skipped), 1))
        return self.last(y)


class _WaveNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 32, 1)
        self.dilated = nn.ModuleList(nn.Conv1d(32, 64, 2, dilation=2**power) for _ in range(2) for power in range(8))
        self.onward = nn.ModuleList(nn.Conv1d(32, 32, 1) for _ in self.dilated)
        self.skipped = nn.ModuleList(nn.Conv1d(32, 64, 1) for _ in self.dilated)
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(64, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))

    def forward(self, x: Tensor) -> Tensor:
        """(N, 1, samples) to (N, 256, samples)."""
        x = self.first(x)
        total: Any = 0
        for dilated, onward, skipped in zip(self.dilated, self.onward, self.skipped, strict=True):
            a, b = dilated(nn.functional.pad(x, (dilated.dilation[0], 0))).chunk(2, 1)
            gated = torch.tanh(a) * torch.sigmoid(b)
            x, total = x + onward(gated), total + skipped(gated)
        return self.last(total)


class _Causal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for power in range(5):
            for inputs in (25 if power == 0 else 100, 100):
                zeros = nn.ConstantPad1d((2 * 2**power, 0), 0)
                layers += [zeros, nn.Conv1d(inputs, 100, 3, dilation=2**power), nn.ReLU()]
        self.body, self.last = nn.Sequential(*layers), nn.Linear(100, 10)

    def forward(self, x: Tensor) -> Tensor:
        """(N, 25, steps) to (N, 10)."""
        return self.last(self.body(x)[:, :, -1])


def _keywords() -> nn.Module:
    """Return DS-CNN, which spots keywords."""
    layers: list[nn.Module] = [nn.Conv2d(1, 64, (10, 4), 2, (5, 1)), nn.BatchNorm2d(64), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.BatchNorm2d(64), nn.ReLU()]
        layers += [nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12))


OWN: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "dcgan": (_generator, (1, 100, 1, 1)),
    "dncnn": (_denoiser, (1, 1, 128, 128)),
    "dscnn": (_keywords, (1, 1, 49, 10)),
    "style": (_style, (1, 3, 128, 128)),
    "tcn": (_Causal, (1, 25, 400)),
    "unet3d": (_VolumeUNet, (1, 1, 32, 32, 32)),
    "wavenet": (_WaveNet, (1, 1, 4000)),
}


def more_networks() -> dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]]:
    """Return name -> what makes the network, and the shape of its input."""
    import timm
    import torchvision

    found = dict(OWN)
    for name in TIMM:
        size = _SIZES.get(name, 224)
        found[name] = (lambda name=name: timm.create_model(name, pretrained=False), (1, 3, size, size))
    for name, shape in TORCHVISION.items():
        *inside, last = name.split(".")
        place: Any = getattr(torchvision.models, inside[0]) if inside else torchvision.models
        make = getattr(place, last)
        found[last] = (lambda make=make: make(weights=None), shape)
    for name, (kind, config, settings, shape) in TRANSFORMERS.items():
        found[name] = (lambda kind=kind, config=config, settings=settings: _Output(kind, config, settings), shape)
    return found
