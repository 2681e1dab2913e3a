# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many streams with one reader each: measures the cost of a stream and how many a server
sustains."""

import time

from load import Load
from report import Column
from servers import ORIGIN_RTP, Origin, WeirRtspsrc, servers

NAME = 'relay'
TITLE = 'Cost of relaying a 1 Mb/s stream to one reader, by number of streams'
CASE, WHO, YARDSTICK = 'streams', 'server', 'stock gst-rtsp-server'
LOG = False
COLUMNS = (
    Column('cpu', 'CPU % per stream', '{:.2f}', spread=True),
    Column('memory', 'MB per stream', '{:.2f}'),
    Column('threads', 'threads per stream', '{:.2f}'),
    Column('connected', 'connected'),
    Column('lost', 'lost'),
    Column('overflows', 'lost upstream'),
    Column('delivered', 'delivered %'),
    Column('total', 'CPU %'),
)

SETTLE = 2
# A server that renumbers packets hides its losses. They show as overflowing sockets, or as far
# fewer packets out than in. The edges of the window are uncertain by some per cent, because
# keyframes are large.
ENOUGH = 90


def one(rig, server_type, streams, rate, window):
    rig.drop_all_but(streams)
    rig.count_upstream(ORIGIN_RTP)
    mounts = [f's{n}' for n in range(streams)]
    joining = streams / rate
    with Origin(rig, 1) as origin:
        # Each mount has its own URL: mounts with the same URL share one upstream.
        with server_type(rig, {mount: f'{origin.url}?{mount}' for mount in mounts}) as server:
            idle = server.usage()
            with Load(rig, '--readers', streams, '--arrivals', f'uniform:{rate}',
                      '--duration', joining + SETTLE + window + 1,
                      *(server.url(mount) for mount in mounts)) as load:
                time.sleep(joining + SETTLE)
                before, out, came = server.usage(), rig.rtp('media'), rig.rtp('upstream')
                overflows = rig.overflows()
                time.sleep(window)
                after = server.usage()
                out, came = rig.rtp('media') - out, rig.rtp('upstream') - came
                overflows = rig.overflows() - overflows
                result = load.result(60)
    values = {
        'memory': (after.rss - idle.rss) / 2**20 / streams,
        'threads': (after.threads - idle.threads) / streams,
        'connected': result['connected'], 'lost': result['lost'], 'overflows': overflows,
        'delivered': 100 * out / came if came else None,
        'total': 100 * (after.cpu - before.cpu) / (after.at - before.at),
    }
    if good(values, streams):
        values['cpu'] = values['total'] / streams
    return values


def good(values, streams):
    """Returns whether everything was delivered. Otherwise the cost of a stream is unknown."""
    return (values['connected'] == streams and values['lost'] == values['overflows'] == 0
            and (values['delivered'] is None or values['delivered'] > ENOUGH))


def run(rig, quick):
    """Grows until every server loses something. A server that lost packets gets no larger case."""
    repeats, window, numbers = ((1, 4, (10, 100, 300)) if quick else
                                (3, 10, (10, 100, 300, 500, 700, 1000)))
    left = [*servers(), WeirRtspsrc]
    for streams in numbers:
        failed = set()
        for _ in range(repeats):
            for server_type in left:
                values = one(rig, server_type, streams, 50, window)
                if 'cpu' not in values:
                    failed.add(server_type)
                yield str(streams), server_type.name, values
        left = [server_type for server_type in left if server_type not in failed]
