"""``uncovered-processor``: what computed the run is not in the sum that the power was made of."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.domain.workload import Processor, computes_in_software
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def uncovered_processor(evidence: Evidence) -> Iterator[Judgement]:
    """Power without the processor that computed is a wrong watt; latency and throughput are none the worse."""
    if evidence.total is None or evidence.workload is None:
        return
    scope = evidence.total.scope
    on_card = evidence.workload.processor is Processor.GPU and not computes_in_software(evidence.processor_name)
    if on_card and evidence.total.lacks_cards:
        yield (
            Verdict.VOID,
            f"the run computed on a graphics card, and the power covers {scope}; `powerlab doctor` says which figures "
            "cards give here",
        )
    if not on_card and evidence.total.lacks_host:
        yield Verdict.VOID, f"the run computed on the cores, and the power covers {scope}"
