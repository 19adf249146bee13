"""Enrolment, and the reports of an agent on its device."""

from __future__ import annotations

from fastapi import APIRouter, Request, status

from powerlab.access.authority import Asking
from powerlab.protocol.messages import Description, EnrolmentCode, EnrolmentCodeRequest, EnrolReply, EnrolRequest
from powerlab.protocol.records import DeviceRecord
from powerlab.store.errors import UnauthorisedError
from powerlab.store.reads import queries
from powerlab.store.writes import devices
from powerlab_api.dependencies import ReadSession, StoreDep
from powerlab_api.roles import AgentDevice, AuthorityDep, Caller, Requires

router = APIRouter(tags=["agents"])


@router.post("/enrolment-codes", status_code=status.HTTP_201_CREATED, dependencies=[Requires.operator])
def create_enrolment_code(store: StoreDep, caller: Caller, request: EnrolmentCodeRequest) -> EnrolmentCode:
    """Make a code that enrols one device once; it is shown only here."""
    with store.write() as session:
        return devices.make_enrolment_code(session, request, store.clock(), actor=caller.name)


@router.post("/agents", status_code=status.HTTP_201_CREATED, dependencies=[Requires.nobody])
def enrol_agent(store: StoreDep, authority: AuthorityDep, http: Request, request: EnrolRequest) -> EnrolReply:
    """Turn an enrolment code into a device and its agent's token."""
    guesses, address = authority.limits.guesses, Asking.of(http).address
    guesses.check(address)
    try:
        with store.write() as session:
            return devices.enrol(session, request, store.clock())
    except UnauthorisedError:
        guesses.spend(address)
        raise


@router.get("/agents/me", dependencies=[Requires.agent])
def read_own_device(session: ReadSession, device_id: AgentDevice) -> DeviceRecord:
    """Return what the server knows of the agent's device; an agent that checks itself learns that its token is good."""
    return queries.device(session, device_id)


@router.put("/agents/me", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Requires.agent])
def describe_device(store: StoreDep, device_id: AgentDevice, said: Description) -> None:
    """Store what the agent's device is and can do now; sweeps are checked against it."""
    with store.write() as session:
        devices.describe(session, device_id, said, store.clock())
