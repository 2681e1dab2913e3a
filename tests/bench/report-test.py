# SPDX-License-Identifier: LGPL-2.1-or-later
"""The benches reject impossible results and leave out peers that do not start."""

import contextlib
import io
import os
import pathlib
import tempfile

import bench
import relay
import servers
from rig import Loopback
from tap import run, test


@contextlib.contextmanager
def printed():
    """Collects the printed lines in a list. Prints them again as TAP diagnostics."""
    lines, output = [], io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            yield lines
    finally:
        lines += output.getvalue().splitlines()
        for line in lines:
            print(f'# {line}'.rstrip())


@test
def an_impossible_delivery_rate_fails_the_bench():
    class Shared:
        NAME, TITLE, COLUMNS = 'shared', 'Ten streams of one upstream', relay.COLUMNS

        @staticmethod
        def run(_rig, _quick):
            yield '10', 'rtsp-proxy', {'cpu': 1, 'delivered': 1000}

    with printed() as lines:
        try:
            bench.run_one(Shared, Loopback(), True, {})
        except AssertionError as error:
            assert str(error) == '10, rtsp-proxy: delivered 1000 % of the expected packets', error
        else:
            raise AssertionError('the result was accepted')
    assert lines == ['', 'shared: Ten streams of one upstream'], lines


@test
def a_peer_that_does_not_start_is_left_out():
    with tempfile.TemporaryDirectory() as directory:
        for name in 'mediamtx', 'live555ProxyServer':
            peer = pathlib.Path(directory, name)
            peer.write_text(f'#!/bin/sh\necho begins\necho {name} has no such setting\n')
            peer.chmod(0o755)
        os.environ['PATH'] = f'{directory}:{os.environ["PATH"]}'
        with printed() as lines:
            servers.leave_out_those_that_fail(Loopback())
    assert lines == [f'skipped: {name} does not start: {name} has no such setting'
                     for name in ('mediamtx', 'live555ProxyServer')], lines
    assert servers.servers() == [servers.Weir, servers.Stock]


if __name__ == '__main__':
    run()
