# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs rtsp-load for the tests."""

import json
import os
import signal
from contextlib import ExitStack

from proc import Proc
from tap import Skip


def program():
    path = os.environ.get('WEIR_RTSP_LOAD')
    if not path:
        raise Skip('WEIR_RTSP_LOAD is not set')
    return path


class Load(Proc):
    def __init__(self, *words, command=(), json=True):
        super().__init__(*command, program(), *(['--json'] if json else []), *words)

    def result(self, status=0, timeout=30):
        """Returns rtsp-load's result. It must exit with `status`."""
        ended = self.wait(timeout)
        assert ended == status, f'exit status {ended}: {self.output()}'
        text = self.output()
        assert '{' in text, text
        return json.loads(text[text.index('{'):])

    def finish(self, status=0):
        """Ends the readers before their duration is over. Returns rtsp-load's result."""
        self.signal(signal.SIGINT)
        return self.result(status)


def load(*words, status=0, command=()):
    with Load(*words, command=command) as running:
        return running.result(status)


def load_at_once(*words, transports=('udp', 'tcp')):
    """Runs rtsp-load over each transport, all at once. Returns the results."""
    with ExitStack() as stack:
        running = [stack.enter_context(Load('--transport', transport, *words))
                   for transport in transports]
        return [each.result() for each in running]


def refuse(*words, line, status=1, timeout=15, command=()):
    """Checks that rtsp-load exits in time with `status` and prints a line that matches."""
    with Load(*words, command=command) as running:
        ended = running.wait(timeout)
        assert ended == status, f'exit status {ended}: {running.output()}'
        running.wait_for_line(line, 1)
        return running.output()


def check(result, **expected):
    found = {key: result[key] for key in expected}
    assert found == expected, (found, expected)
