"""What a route needs of whoever calls it, said in one word: ``dependencies=[Requires.viewer]``.

The word goes into the description of the API as the role of the security requirement (OpenAPI 3.1, Security Requirement
Object); an application with a route that says none is not made.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from powerlab.access.authority import Asking, Authority
from powerlab.access.principal import LOCAL_USER, Principal
from powerlab.access.session_cookie import COOKIE
from powerlab.protocol.access import Role
from powerlab.store.errors import ForbiddenError, UnauthorisedError

_bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="A person's or a program's token, or an agent's."
)
_cookie = APIKeyCookie(
    name=COOKIE, auto_error=False, scheme_name="session", description="What /login gives a browser for a token."
)


async def _authority(request: Request) -> Authority:
    authority: Authority = request.app.state.authority
    return authority


AuthorityDep = Annotated[Authority, Depends(_authority)]


def _principal(request: Request, authority: AuthorityDep) -> Principal:
    return authority.identify(Asking.of(request))


Caller = Annotated[Principal, Depends(_principal)]
"""Who asks."""


async def _permitted(
    wanted: SecurityScopes,
    caller: Caller,
    # What the description shows; Caller has looked at both already.
    _token: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    _session: Annotated[str | None, Depends(_cookie)],
) -> None:
    roles = [Role(scope) for scope in wanted.scopes]
    if any(caller.may_act_as(role) for role in roles):
        return
    names = " or ".join(roles)
    if caller is LOCAL_USER:
        raise UnauthorisedError(f"this route is for an {names}; send the token of an enrolled agent as bearer token.")
    raise ForbiddenError(f"this needs the role {names}; the token of {caller.name!r} has the role {caller.role}.")


async def _anybody() -> None:
    """Let everybody in, without a thread of the pool."""


class Requires:
    """The words: the least role that may call a route."""

    viewer = Security(_permitted, scopes=[Role.VIEWER.value])
    operator = Security(_permitted, scopes=[Role.OPERATOR.value])
    admin = Security(_permitted, scopes=[Role.ADMIN.value])
    agent = Security(_permitted, scopes=[Role.AGENT.value])
    """An agent; the route sees to it that it touches nothing but the rows of ``AgentDevice``."""
    viewer_or_agent = Security(_permitted, scopes=[Role.VIEWER.value, Role.AGENT.value])
    """As ``viewer``, and agents too: the route looks at ``Caller.device_id``."""
    nobody = Depends(_anybody)
    """No token at all."""


def check_roles(router: APIRouter) -> None:
    """Raise RuntimeError where a route does not say what it needs, or says it twice."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            said = [one for one in route.dependencies if one.dependency in (_permitted, _anybody)]
            if len(said) != 1:
                raise RuntimeError(
                    f"the route {route.path} must have one of Requires in its dependencies, not {len(said)}"
                )


async def _agent(caller: Caller) -> str:
    if caller.device_id is None:
        raise ForbiddenError("this route is for agents.")
    return caller.device_id


AgentDevice = Annotated[str, Depends(_agent)]
"""The id of the device whose agent asks."""


async def _submitter(caller: Caller) -> str:
    return caller.name


Submitter = Annotated[str, Depends(_submitter)]
"""The name of whoever asks for something."""
