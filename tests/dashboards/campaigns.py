"""A campaign on boards of one kind, of which some are done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from powerlab.domain.selector import Selector
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.labs import CampaignRequest, Each
from powerlab.protocol.messages import Finish, RunUpload
from powerlab.store.reads.campaigns import campaign
from powerlab.store.writes import jobs, runs
from powerlab.store.writes.campaigns import submit_campaign
from tests.dashboards import plausible
from tests.dashboards.conftest import START, Shelf


def start_campaign(
    shelf: Shelf, plan: SweepPlan, names: Sequence[str], *, done: int, board: str = "jetson-agx-xavier"
) -> str:
    """Return the id of a campaign on new boards of these names, of which the first so many are done."""
    benches = {name: _bench(name, board) for name in names}
    for bench in benches.values():
        shelf.add_sweep(bench, plausible.plan(modes=("MODE_10W",)))
    request = CampaignRequest(each=Each.DEVICE, of=Selector(board=board), plan=plan)
    with shelf.store.write() as session:
        campaign_id, _ = submit_campaign(session, request, START, by="ana")
    with shelf.store.session() as session:
        sweeps = campaign(session, campaign_id).sweeps
    for number, sweep in enumerate(sweeps[:done]):
        with shelf.store.write() as session:
            lease = jobs.lease(session, sweep.device_id, START)
            assert lease is not None
            token = lease.fencing_token
            for run in plausible.runs(benches[sweep.device_name], plan, sweep.id, seed=number):
                own = replace(run, id=plausible.run_id(sweep.id, run.point, run.repeat))
                runs.store_run(session, sweep.device_id, RunUpload(fencing_token=token, run=own), START)
            jobs.finish(session, sweep.device_id, lease.job_id, Finish(fencing_token=token, state="done"), START)
    return campaign_id


def _bench(name: str, board: str) -> plausible.Bench:
    bench = plausible.xavier(name)
    return replace(bench, device=replace(bench.device, board=board))
