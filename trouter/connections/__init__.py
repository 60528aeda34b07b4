"""Connections from their first byte to their last, accepted or dialled, with their listeners and connectors.

Several objects describe a connection, each for another reader:

* ``hooks.PeerFacts``: the socket, its TLS and its listener, before the first octet; for plugins.
* ``shared.PeerSettings``: what the listener or connector says, one object for all its peers.
* ``policy.requests.OpenRequest``: who wants to open it, and under which name. Plugins see ``hooks.ConnectionRequest``
  of it, and for a link ``hooks.AttachRequest``.
* ``policy.judge.Admission``: the terms that the policy found for it. ``policy.connection_policy`` holds them, and gets
  others when the policy changes.
* ``core.terms.PeerTerms``: what the core asks about each of its links, from the settings and the admission.
* ``lifetime``, ``peer_login``, ``membership``: its state, its user, and its part in the router; they change.
* ``net.view.ConnectionView``: what of all that the other rooms may ask and order.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
