# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stored titles: readers that ask within an interval share one upstream session."""

import time

from control import Controlled
from proxy import Origin, Read, wait_for_readers, wait_until
from tap import run, test

QUICK = {'linger': '200ms', 'connect-timeout': '2s', 'read-timeout': '2s'}


def title(origin, interval):
    return {'/title': {'upstream': origin.url, 'interval': interval, **QUICK}}


@test
def readers_within_the_interval_get_the_beginning():
    """all readers get the title from its first access unit, with their own timestamps"""
    with Origin() as origin, Controlled(title(origin, '30s')) as proxy:
        reads = []
        for i in range(5):
            reads.append(Read(proxy.url('/title'), transport=('tcp', 'udp')[i % 2], duration=3,
                              expect=origin.expect))
            wait_for_readers(proxy, i + 1)
            time.sleep(0.4)
        metrics = proxy.get('/metrics').decode()
        for name, value in ('sessions', 1), ('hits_total', 4), ('misses_total', 1):
            assert f'weir_interval_{name}{{mount="/title"}} {value}\n' in metrics, metrics
        results = [read.result() for read in reads]
        assert origin.count('play') == 1
        # All readers have the same number, so all had the beginning.
        units = [result['readers'][0]['tracks']['video']['aus'] for result in results]
        assert max(units) - min(units) <= 3, units
        for result in results:
            totals = result['totals']
            assert totals['ok'] == 1 and totals['lost'] == totals['mismatched'] == 0, totals
            # The two tracks' delays start with their own first packets, which a busy machine hands
            # over late.
            assert totals['av_offset_error_max_us'] < 200000, totals


@test
def a_later_reader_begins_another_session():
    with Origin() as origin, Controlled(title(origin, '1s')) as proxy:
        first = Read(proxy.url('/title'), duration=4)
        wait_for_readers(proxy, 1)
        time.sleep(1.2)
        second = Read(proxy.url('/title'), duration=2)
        wait_for_readers(proxy, 2)
        assert origin.count('play') == 2
        assert first.result()['totals']['ok'] == second.result()['totals']['ok'] == 1


@test
def the_end_of_a_title_is_the_end_of_its_session():
    """a reader that is behind gets the rest, no session starts over, and none stays behind"""
    with Origin() as origin, Controlled(title(origin, '8s')) as proxy:
        early = Read(proxy.url('/title'), duration=30)
        wait_for_readers(proxy, 1)
        time.sleep(1.5)
        late = Read(proxy.url('/title'), duration=30)
        wait_for_readers(proxy, 2)
        time.sleep(0.5)
        origin.kill()
        proxy.wait_for_line(r' reader \S+ out: /title#1: the title has ended')
        units = [read.result(None)['readers'][0]['tracks']['video']['aus'] for read in (early, late)]
        assert abs(units[0] - units[1]) <= 3, units
        with Origin(after=origin) as again:
            wait_until(lambda: 'weir_interval_sessions{mount="/title"} 0\n'
                       in proxy.get('/metrics').decode(), 10, 'the session is gone')
            assert again.count('play') == 0


if __name__ == '__main__':
    run()
