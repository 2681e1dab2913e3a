# SPDX-License-Identifier: LGPL-2.1-or-later
"""The worker processes of a proxy."""

import os

from proxy import wait_until

LIVE = ('launch:videotestsrc is-live=true ! '
        'video/x-raw,format=I420,width=64,height=64,framerate=25/1 ! jpegenc ! rtpjpegpay name=pay0')
ON = {'on-demand': 'no'}


def status_of(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return {key: value.strip() for key, _, value in (line.partition(':') for line in file)}


def workers_of(proxy):
    """Returns the processes that the proxy started and that have not ended."""
    found = set()
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            status = status_of(name)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if status['PPid'] == str(proxy.pid) and status['State'][0] != 'Z':
            found.add(int(name))
    return found


def worker_of(proxy, label):
    """Returns the worker of the upstream whose label begins like this, or None."""
    for node in proxy.get('/v1/graph')['nodes']:
        if node['kind'] == 'upstream' and node['label'].startswith(label) and node['state'] == 'up':
            return int(node['params'].get('worker', 0)) or None
    return None


def wait_for_worker(proxy, label, other_than=None):
    found = []

    def is_there():
        found[:] = [worker_of(proxy, label)]
        return found[0] not in (None, other_than)

    wait_until(is_there, 20, f'{label} is up in a worker')
    return found[0]


def is_gone(pid):
    try:
        return status_of(pid)['State'][0] == 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return True


def kind_of(pid):
    with open(f'/proc/{pid}/cmdline', encoding='utf-8') as file:
        return (file.read().split('\0') + [''])[1]


def wait_for_kind(proxy, kind):
    """Returns a worker of this kind."""
    found = []

    def is_there():
        found[:] = [pid for pid in workers_of(proxy) if kind_of(pid) == kind]
        return found

    wait_until(is_there, 20, f'a worker of the kind {kind}')
    return found[0]
