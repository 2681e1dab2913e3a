# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients and servers of other projects, over each transport, with each kind of credentials."""

import contextlib

from control import Controlled
from proxy import QUICK, Origin, Read
from tap import run, test

USER, PASSWORD, TOKEN = 'viewer', 'Circle-of-life', 'T0ken-of-the-test'

# The arguments of an Origin, and the keys of a mount that reads it.
UPSTREAM_CREDENTIALS = {
    'none': ({}, {}),
    'basic': ({'user': USER, 'password': PASSWORD, 'auth': 'basic'},
              {'user': USER, 'password': PASSWORD}),
    'digest': ({'user': USER, 'password': PASSWORD, 'auth': 'digest'},
               {'user': USER, 'password': PASSWORD}),
    'digest-sha256': ({'user': USER, 'password': PASSWORD, 'auth': 'digest-sha256'},
                      {'user': USER, 'password': PASSWORD}),
    'token': ({'token': TOKEN}, {}),
}


def upstream_mounts(origins):
    """Returns {path: mount} for every client, transport and kind of credentials that works."""
    mounts = {}
    for name, origin in origins.items():
        url = origin.url + (f'?token={TOKEN}' if name == 'token' else '')
        for client in 'light', 'rtspsrc':
            # GStreamer's client knows no SHA-256, and requests a SETUP without the query.
            if client == 'rtspsrc' and name in ('digest-sha256', 'token'):
                continue
            for transport in 'udp', 'tcp':
                mounts[f'/{name}-{client}-{transport}'] = {
                    'upstream': url, 'client': client, 'transport': transport,
                    **UPSTREAM_CREDENTIALS[name][1], **QUICK}
    return mounts


@test
def upstreams_are_read_with_every_kind_of_credentials():
    with contextlib.ExitStack() as stack:
        origins = {name: stack.enter_context(Origin(**words))
                   for name, (words, _) in UPSTREAM_CREDENTIALS.items()}
        mounts = upstream_mounts(origins)
        proxy = stack.enter_context(Controlled(mounts))
        reads = {path: stack.enter_context(Read(proxy.url(path), duration=1)) for path in mounts}
        wrong = {path: result['totals'] for path, read in reads.items()
                 if (result := read.result(None))['totals']['ok'] != 1}
        assert not wrong, wrong
        assert TOKEN not in proxy.output() and PASSWORD not in proxy.output()


if __name__ == '__main__':
    run()
