"""A server as a Python program sees it: every answer is a typed record, lists are generators.

::

    client = Client("http://server:8765", token="...")
    for sweep in client.sweeps(state=SweepState.DONE, model="resnet50"):
        for summary in client.summaries(sweep.id):
            print(summary.point, summary.metric("efficiency_img_per_s_per_w"))

It needs no extra: urllib3 and msgspec come with every powerlab.
"""

from powerlab.client.client import Client
from powerlab.client.errors import ServerAwayError, StatusError

__all__ = ["Client", "ServerAwayError", "StatusError"]
