"""Everything ``powerlab doctor`` finds out, as one document of values that JSON can hold.

Without a watch the same device gives the same document: nothing in it depends on when it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from powerlab.domain.errors import PowerlabError
from powerlab.engine.target.tiers import choose_tier
from powerlab.modes.reboot.return_note import ReturnNote
from powerlab.power.cross_check import cross_check
from powerlab.power.graphics_processors import graphics_processors
from powerlab.power.sampling.update_period import Watched, corrected, watch
from powerlab.power.total import total_of_plan
from powerlab.throttling.registry import probe_watches

if TYPE_CHECKING:
    from powerlab.domain.power import SourceProbe
    from powerlab.engine.gpu.target import Target
    from powerlab.sweep.host import Host


def document(host: Host, watch_s: float | None = None) -> dict[str, Any]:
    """Return everything the doctor found.

    Args:
        host: the device.
        watch_s: for how long to watch every rail; None to leave that out.

    Raises:
        PowerlabError: a rail that was there a moment ago cannot be watched.
    """
    capabilities = host.capabilities()
    rails = [rail for source in capabilities.sources for rail in source.rails]
    provenances = {rail.key: rail.provenance for rail in rails}
    total = capabilities.total
    on_cards = total_of_plan(total, rails, on_cards=True)
    found: dict[str, Any] = msgspec.to_builtins(
        {
            "device": host.device(),
            "engine": {"tier": choose_tier().name},
            "gpus": _gpus(host),
            "graphics_processors": graphics_processors(host.sysroot, capabilities.sources),
            "sources": capabilities.sources,
            "total": total,
            "total_provenance": provenances[total.rails[0]] if total else None,
            "total_on_cards": on_cards if on_cards != total else None,
            "cross_check": cross_check(host.sysroot),
            "knobs": host.controller.probes(),
            "modes": capabilities.modes,
            "mode_problems": host.controller.own_problems(),
            "journal": _journal(host),
            "watches": probe_watches(host.sysroot),
            "watched_s": watch_s,
            "watched": _watched(host, capabilities.sources, watch_s),
        }
    )
    return found


def _gpus(host: Host) -> dict[str, Any]:
    """Return the GPUs that the built-in engine can compute on, or why there are none."""
    if host.sysroot.simulated:
        return {"found": [], "problem": "a simulated board's GPU stands for the time it takes, and computes nothing"}
    from powerlab.engine.gpu.device import devices
    from powerlab.engine.gpu.target import target_of

    try:
        found = devices()
    except PowerlabError as error:
        return {"found": [], "problem": str(error)}
    return {
        "found": [
            {
                "name": one.name,
                "driver": one.driver,
                "kind": one.kind,
                "memory_bytes": one.memory_bytes,
                "stores_16_bits": one.half_storage,
                "dot_product": one.dot_product,
                "matrices": _matrices(target_of(one)),
                "queues": one.queues,
            }
            for one in found
        ],
        "problem": "" if found else "Vulkan's loader knows none here",
    }


def _matrices(target: Target) -> dict[str, list[str]]:
    """Return the sizes of cooperative matrices that kernels use, by precision: rows x columns x inner."""
    sizes = {"fp16": target.matrices, "int8": target.byte_matrices}
    return {precision: ["x".join(map(str, size)) for size in found] for precision, found in sizes.items()}


def _journal(host: Host) -> dict[str, Any]:
    """Return what ``powerlab modes restore`` would undo; a journal that cannot be read is told, not raised."""
    try:
        return {
            "unrestored": host.controller.unrestored(),
            "persistent": host.controller.persistent(),
            "away": ReturnNote(host.sysroot, host.state_dir).words(),
            "problem": "",
        }
    except PowerlabError as error:
        return {"unrestored": None, "persistent": None, "away": "", "problem": str(error)}


def _watched(host: Host, sources: Sequence[SourceProbe], watch_s: float | None) -> list[dict[str, Any]]:
    """Return what every rail was seen to do, in the order of the sources."""
    if watch_s is None:
        return []
    keys = [rail.key for source in sources for rail in source.rails]
    return [_seen(watched) for watched in watch(host.sysroot, keys, watch_s)]


def _seen(watched: Watched) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(watched)
    stated_s = document.pop("rail")["update_period_s"]
    reckoned_s = corrected(watched).update_period_s
    return {
        "rail": watched.rail.key,
        "stated_period_s": stated_s,
        "reckoned_period_s": reckoned_s,
        "at_every_read": watched.at_every_read,
        **document,
    }
