# SPDX-License-Identifier: LGPL-2.1-or-later
"""The benches reject impossible results and leave out peers that do not start."""

import contextlib
import io
import os
import pathlib
import tempfile

import bench
import relay_measure
import report
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


def refusal(values, most=report.MOST_DELIVERED):
    """Runs a bench that measures these values. Returns why they are refused, and what is
    printed."""
    class Bench:
        NAME, TITLE, COLUMNS = 'shared', 'Ten streams of one upstream', relay_measure.COLUMNS
        CASE, WHO, YARDSTICK = 'streams', 'server', None
        MOST_DELIVERED = most

        @staticmethod
        def run(_rig, _quick):
            yield '1', 'rtsp-proxy', {'cpu': 7, 'delivered': 100}
            yield '10', 'rtsp-proxy', values

    with printed() as lines:
        try:
            bench.run_one(Bench, Loopback(), True, {})
        except AssertionError as error:
            return str(error), lines
    raise AssertionError('the result was accepted')


@test
def an_impossible_delivery_rate_fails_the_bench():
    why, lines = refusal({'cpu': 1, 'delivered': 1000})
    assert why == '10, rtsp-proxy: delivered 1000 % of the expected packets', why
    assert lines[:2] == ['', 'shared: Ten streams of one upstream'], lines


@test
def where_packets_are_counted_exactly_a_smaller_rate_is_impossible_too():
    why, _ = refusal({'cpu': 1, 'delivered': 103}, relay_measure.MOST)
    assert why == '10, rtsp-proxy: delivered 103 % of the expected packets', why


@test
def no_packets_and_no_cpu_time_fail_the_bench():
    why, _ = refusal({'packets': 0, 'total': 1})
    assert why == '10, rtsp-proxy: the origin sent no packets', why
    why, _ = refusal({'packets': 1, 'received': 0, 'total': 1})
    assert why == '10, rtsp-proxy: no packets were delivered', why
    why, _ = refusal({'packets': 1, 'received': 1, 'total': 0})
    assert why == '10, rtsp-proxy: the server used no CPU time', why


@test
def a_bench_that_fails_shows_the_cases_before():
    _, lines = refusal({'cpu': 1, 'delivered': 1000})
    assert any(line.startswith('| 1       | rtsp-proxy | 7.0') for line in lines), lines


@test
def labels_of_a_picture_do_not_touch():
    cases = [f'{n} UDP 4 Mb/s, slices' for n in range(5)]
    assert all(len(line) <= report.LABELS_WIDTH / 5
               for label in report.labels(cases) for line in label), report.labels(cases)


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
