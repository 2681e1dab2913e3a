# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sends invalid data to every entrance of the proxy at once, also within valid sessions: requests
and reports of readers, answers and media of upstreams, datagrams, files and API requests.

Meanwhile well-behaved readers play without packet loss, and new clients are answered. Afterwards
the proxy has returned its resources.
"""

import collections
import http.client
import os
import random
import re
import socket
import struct
import tempfile
import threading
import time

from control import Controlled, rss_kib
from good import PATIENCE, SANITIZED, Good, play_on
from multicast import enter_network
from proc import Rtsp, free_port, known_criticals, open_files
from proxy import CLIENT, wait_until
from scripted import KEY_PICTURE, PICTURE, VIDEO, Server, rtp, sender_report
from spoil import HEADERS, other_lines, spoilt
from tap import run, test
from tspackets import STREAMS, mutated

# rtspsrc of GStreamer 1.22, after answers that it did not expect.
OF_RTSPSRC = [r"gst_event_set_seqnum: assertion 'seqnum != GST_SEQNUM_INVALID' failed"] if CLIENT else []
SECONDS = float(os.environ.get('WEIR_HOSTILE_SECONDS', '20'))
QUICK = {'linger': '200ms', 'connect-timeout': '1s', 'read-timeout': '2s', 'start-timeout': '2s'}
UPSTREAMS = 6
FILMS = 8
# The allocator's reserve after the peak; a sanitizer also keeps freed memory.
MORE_KIB = (700 if SANITIZED else 256) * 1024

HAS_NETWORK = enter_network()  # before the first socket
LOOPBACK = {'iface': 'lo', 'ttl': 0}
CAST = {'broadcast': {'groups': '239.7.9.1', **LOOPBACK}}
FILMS_CAST = {'broadcast': {'groups': '239.7.9.16/28', 'first': '1s', **LOOPBACK}}

LINES = (
    'a=rtpmap:96 H264/0', 'a=rtpmap:', 'a=control:', 'a=control:rtsp://', 'a=fmtp:96 ;=', 'm=x', 'm=',
    'a=key-mgmt:mikey AAAA', 'a=rtcp-fb:* ', 'a=range:npt=x', 'c=IN IP4 ', 'b=', '=', 'a=extmap:',
    'm=audio 0 RTP/AVP 0', 'm=video 0 RTP/SAVPF 96', 'a=' + 'z' * 9000)


class Worker:
    """Repeats a step in a thread and remembers the last one."""

    def __init__(self, proxy, chance, step):
        self.proxy, self.chance, self.step = proxy, chance, step
        self.did, self.failed, self.times = collections.deque(maxlen=6), None, 0
        self.address = f'127.0.{chance.randrange(1, 250)}.{chance.randrange(1, 250)}'
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.proxy.over.is_set() and not self.failed:
            try:
                self.step(self)
                self.times += 1
            except OSError:
                pass  # the proxy may refuse or close at any time
            except Exception as error:  # pylint: disable=broad-except
                self.failed = repr(error)

    def connect(self, port):
        return socket.create_connection(('127.0.0.1', port), 5, (self.address, 0))

    def send(self, connection, data):
        self.did.append(data)
        if self.chance.random() < 0.3:
            at = self.chance.randrange(len(data) + 1)
            connection.sendall(data[:at])
            time.sleep(self.chance.random() / 20)
            data = data[at:]
        connection.sendall(data)


# ---- readers ----

# Bodies of requests for packets of a broadcast.
RANGES = (b'live', b'0 0-99', b'0 0-0\n1 5-9', b'0 9-0', b'0 0-4294967295', b'9 0-1', b'0 0-9\n' * 300,
          b'0 65535-1', b'\0', b'\n')


def hear(connection, wait):
    """Returns the data that arrives within the time, up to one buffer."""
    connection.settimeout(wait)
    try:
        return connection.recv(65536)
    except TimeoutError:
        return b'nothing'


def request(worker, method, url, number, session):
    chance = worker.chance
    lines = [f'{method} {url} RTSP/1.0', f'CSeq: {number}']
    if session:
        lines.append(f'Session: {session}')
    if method == 'SETUP':
        port = chance.randrange(20000, 60000) & ~1
        lines.append('Transport: ' + chance.choice((
            'RTP/AVP/TCP;unicast;interleaved=0-1', 'RTP/AVP/TCP;unicast;interleaved=254-255',
            f'RTP/AVP;unicast;client_port={port}-{port + 1}', 'RTP/AVP;multicast')))
    if method in ('PLAY', 'PAUSE'):
        lines.append('Range: npt=' + chance.choice(('0-', 'now-', '1-2', '-')))
    body = b''
    if method.endswith('_PARAMETER') or chance.random() < 0.03:
        body = chance.choice((chance.randbytes(chance.randrange(40)), *RANGES))
        lines.append(f'Content-Length: {len(body)}')
        if chance.random() < 0.5:
            lines.append('Content-Type: application/x-weir-ranges')
    if method == 'DESCRIBE' and chance.random() < 0.3:
        lines.append('Supported: x-weir-schedule')
    head = '\r\n'.join(lines)
    if chance.random() < 0.4:
        head = other_lines(head, HEADERS, chance)
    return head.encode('latin-1') + b'\r\n\r\n' + body


def junk(chance):
    """Returns an interleaved frame whose length may be wrong."""
    data = chance.choice((chance.randbytes(chance.randrange(60)), sender_report(1, 2),
                          b'\x81\xce\0\x02' + bytes(8), b'\x81\xc9\0\x07' + bytes(28)))
    size = len(data) if chance.random() < 0.7 else chance.randrange(65536)
    return struct.pack('>cBH', b'$', chance.choice((0, 1, 2, 3, 255)), size) + data


def report_to(answer, chance):
    """Sends valid and invalid reports to the ports that an answer names."""
    if not (ports := re.search(rb'server_port=(\d+)-(\d+)', answer)):
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for port in map(int, ports.groups()):
            if 0 < port < 65536:
                for _ in range(5):
                    sender.sendto(spoilt(sender_report(1, 2), chance), ('127.0.0.1', port))


def read(worker):
    """Runs a session that is mostly valid."""
    chance, proxy = worker.chance, worker.proxy
    path = chance.choice(proxy.paths)
    url = path if path == '*' else proxy.url(path)
    methods = ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY', 'PAUSE', 'PLAY', 'GET_PARAMETER',
               'SET_PARAMETER', 'TEARDOWN']
    if chance.random() < 0.4:
        methods = chance.choices([*methods, 'ANNOUNCE', 'RECORD', 'REDIRECT', 'NONE', 'GET', 'POST'],
                                 k=chance.randrange(1, 12))
    session, pipelined = None, chance.random() < 0.2
    with worker.connect(proxy.port) as connection:
        for number, method in enumerate(methods, 1):
            to = f'{url}/stream={chance.choice("0001x")}' if method == 'SETUP' else url
            data = request(worker, method, to, number, session)
            if chance.random() < 0.25:
                data = spoilt(data, chance)
            if chance.random() < 0.1:
                data = junk(chance) + data
            worker.send(connection, data)
            if chance.random() < 0.03:
                connection.shutdown(socket.SHUT_WR)
            if pipelined:
                continue
            answer = hear(connection, chance.choice((0.05, 0.5)))
            if not answer:
                return
            if found := re.search(rb'Session: ?([^;\r]+)', answer):
                session = found[1].decode('latin-1')
            report_to(answer, chance)
        hear(connection, 0.1)


# ---- upstreams ----


def answer_of(chance):
    """Returns a function that spoils an upstream's answers; it keeps some, or nothing would
    start."""
    def mangle(_method, answer):
        if chance.random() < 0.6:
            return answer
        head, _, body = answer.decode('latin-1').partition('\r\n\r\n')
        if body and chance.random() < 0.7:
            body = '\r\n'.join(other_lines('v=0\r\n' + body, LINES, chance).split('\r\n')[1:])
            head = re.sub(r'Content-Length: \d+', f'Content-Length: {len(body)}', head)
        if chance.random() < 0.5:
            head = other_lines(head, HEADERS, chance)
        if chance.random() < 0.15:
            head = re.sub(r'200 OK', chance.choice((
                '401 Unauthorized', '404 x', '302 Found', '461 x', '454 x', '551 x', '100 x', '-1', '')),
                          head)
        answer = (head + '\r\n\r\n' + body).encode('latin-1')
        return spoilt(answer, chance) if chance.random() < 0.2 else answer

    return mangle


def media_of(chance):
    def play(session):
        hostile = chance.random() < 0.8
        try:
            for seq in range(500):
                if session.left.wait(0.01):
                    return
                packet = rtp(seq, seq * 900, KEY_PICTURE if seq % 10 == 0 else PICTURE)
                if not hostile or chance.random() < 0.5:
                    session.send(VIDEO, packet)
                elif chance.random() < 0.6:
                    session.send(VIDEO, spoilt(packet, chance)[:60000])
                elif chance.random() < 0.5:
                    session.send(VIDEO, spoilt(sender_report(seq << 32, seq), chance), rtcp=True)
                elif chance.random() < 0.3:
                    with session.lock:
                        session.connection.sendall(chance.choice((
                            junk(chance), b'RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n',
                            b'GET_PARAMETER * RTSP/1.0\r\nCSeq: 9\r\n\r\n',
                            b'REDIRECT * RTSP/1.0\r\nCSeq: 9\r\nLocation: rtsp://\r\n\r\n',
                            b'ANNOUNCE x RTSP/1.0\r\nContent-Length: 3\r\n\r\nv=0')))
            session.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    return play


# ---- datagrams, files, the API ----


def send_datagrams(worker):
    chance = worker.chance
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(('127.0.0.1' if chance.random() < 0.7 else worker.address, 0))
        packets = mutated(chance.choice(list(STREAMS.values())), chance)
        first = chance.randrange(65536)
        for n in range(60):
            at = n * 7 % max(1, len(packets))
            ts = b''.join(packets[at:at + 7])
            media = rtp(first + n, n * 900, KEY_PICTURE if n % 8 == 0 else PICTURE)
            for port, data in ((worker.proxy.ts, ts), (worker.proxy.rtp, media),
                               (worker.proxy.rtp + 1, sender_report(n << 32, n * 900))):
                data = spoilt(data, chance) if chance.random() < 0.2 else data
                worker.did.append(data)
                sender.sendto(data[:60000], ('127.0.0.1', port))
            time.sleep(0.005)


def change_films(worker):
    """Replaces files, which may not be open yet."""
    chance = worker.chance
    path = os.path.join(worker.proxy.films, f'{chance.randrange(FILMS)}.ts')
    data = b''.join(mutated(chance.choice(list(STREAMS.values())) * chance.choice((1, 50)), chance))
    with open(path + '.part', 'wb') as file:
        file.write(data)
    os.replace(path + '.part', path)
    time.sleep(0.1)


BODIES = ('', '{}', '[]', 'null', '{"upstream": 1}', '{"upstream": "launch:fakesrc"}', '{"upstreams": []}',
          '{"upstream": "rtsp://127.0.0.1:9/x", "cache": {"time": "1s", "bytes": "1M"}}',
          '{"upstream": "udp://127.0.0.1:9"}', '{"pipeline": [["pull"]]}', '{"priority": 99}',
          '{"upstream": "rtsp://127.0.0.1:9/x", "choices": {"transcode": ["size"]}}', '[' * 3000)
ROUTES = ('/v1/mounts', '/v1/readers', '/v1/graph', '/v1/graph.dot', '/v1/cluster', '/v1/health', '/v1/ready',
          '/v1/openapi.json', '/metrics', '/', '/v1', '/v1/mounts/', '/v1/readers/x',
          '/v1/readers/99999999', '/v1/mounts/%00', '/v1/mounts/..%2f', '/v1/graph?' + 'x=1&' * 50)


def call(worker):
    chance = worker.chance
    method = chance.choice(('GET', 'GET', 'PUT', 'PATCH', 'DELETE', 'POST', 'HEAD', 'OPTIONS', 'X'))
    route = chance.choice((*ROUTES, *[f'/v1/mounts/new{chance.randrange(3)}'] * 6))
    body = chance.choice(BODIES).encode()
    if chance.random() < 0.3:
        body = spoilt(body, chance)
    worker.did.append((method, route, body))
    if chance.random() < 0.3:
        head = (f'{method} {route} HTTP/1.1\r\nHost: 127.0.0.1:{worker.proxy.api_port}\r\n'
                f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n')
        with worker.connect(worker.proxy.api_port) as connection:
            connection.sendall(spoilt(head.encode() + body, chance))
            hear(connection, 0.2)
        return
    try:
        worker.proxy.http(method, route, body)
    except http.client.HTTPException:
        pass


# ---- the well-behaved readers ----


def seconds_to_answer(proxy):
    """Returns how long a new client waits for an answer."""
    start = time.monotonic()
    with Rtsp(proxy.port, timeout=PATIENCE) as rtsp:
        assert rtsp.request('OPTIONS', '*')[0] == 200
    return time.monotonic() - start


# ---- all at once ----


# The first broadcast, UDP reader and title make sockets, processes and threads that stay (15 descriptors
# were seen). A fault that keeps something would keep it hundreds of times.
SLACK = 24


def held(proxy):
    return (len(os.listdir(f'/proc/{proxy.pid}/fd')), len(os.listdir(f'/proc/{proxy.pid}/task')))


def wait_for_rest(proxy, before=None):
    def rests():
        mounts = proxy.get('/v1/mounts')['mounts']
        return (all(mount['state'] in ('idle', 'down') for mount in mounts
                    if mount['path'] == '/good') and not proxy.get('/v1/readers')['readers']
                and (before is None or all(now <= then + SLACK for now, then in zip(held(proxy), before))))

    try:
        # A session whose connection is gone lasts a minute.
        wait_until(rests, 100, 'the resources are returned')
    except AssertionError as error:
        raise AssertionError(f'{error}: {before}, {held(proxy)}: {list(open_files(proxy.pid))}') from None
    return held(proxy)


def fail(proxy, workers, why):
    for worker in workers:
        print(f'# {worker.step.__name__}, {worker.times} times, the last ones:')
        for data in worker.did:
            print(f'#   {data!r}'[:2000])
    raise AssertionError(f'{why}; exit status {proxy._child.poll()}')


def attack(proxy, seed, upstreams):
    steps = [read] * 6 + [send_datagrams, change_films, call, call]
    workers = [Worker(proxy, random.Random(seed + n), step) for n, step in enumerate(steps)]
    goods = [Good(proxy, udp) for udp in (False, True)]
    for each in goods:
        each.start()
    for worker in workers:
        worker.thread.start()
    chance, end, worst = random.Random(seed - 1), time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        try:
            worst = max(worst, seconds_to_answer(proxy))
        except (OSError, AssertionError) as error:
            fail(proxy, workers, f'a new client is not answered: {error!r}')
        wrong = [each.wrong for each in goods if each.wrong]
        wrong += [worker.failed for worker in workers if worker.failed]
        if wrong or not proxy.running():
            fail(proxy, workers, f'failed: {wrong}')
        for upstream in upstreams:
            if chance.random() < 0.1:
                upstream.play, upstream.timeout = media_of(chance), chance.choice((1, 2, 60))
                upstream.mangle = answer_of(chance)
        time.sleep(0.1)
    proxy.over.set()
    for each in *goods, *(worker.thread for worker in workers):
        each.join(30)
        assert not each.is_alive()
    print(f'# {sum(worker.times for worker in workers)} steps; {goods[0].packets} and '
          f'{goods[1].packets} packets; an answer took {worst:.2f} s at most', flush=True)
    assert worst < PATIENCE and all(each.packets > SECONDS * 20 for each in goods), worst
    assert not [each.wrong for each in goods if each.wrong], [each.wrong for each in goods]


def mounts(good, upstreams, proxy_ports, films):
    ts, media = proxy_ports
    return {
        '/good': {'upstream': good.url, 'transport': 'tcp', **QUICK},
        **{f'/bad{n}': {'upstream': upstream.url.replace('//', '//user:word@'),
                        'transport': ('auto', 'udp', 'tcp')[n % 3], **QUICK}
           for n, upstream in enumerate(upstreams)},
        '/cached': {'upstream': upstreams[0].url, 'cache': {'time': '2s', 'bytes': '4M'}, **QUICK},
        '/ts': {'upstream': f'udp://127.0.0.1:{ts}', **QUICK},
        '/rtp': {'upstream': f'rtp://127.0.0.1:{media}?encoding-name=H264&payload=96', **QUICK},
        '/films': {'upstream': f'file://{films}/', 'linger': '200ms', **(FILMS_CAST if HAS_NETWORK else {})},
        **({'/cast': {'upstream': upstreams[0].url, 'on-demand': False, **CAST, **QUICK}}
           if HAS_NETWORK else {}),
    }


@test(timeout=int(SECONDS) + 300)
def invalid_data_harms_no_other_client():
    seed = int(os.environ.get('WEIR_SEED', time.time()))
    print(f'# WEIR_SEED={seed}', flush=True)
    chance = random.Random(seed - 2)
    # Errors in the scripted servers' threads do not count.
    threading.excepthook = lambda _args: None
    good = Server(play_on)
    upstreams = [Server(media_of(chance), mangle=answer_of(chance)) for _ in range(UPSTREAMS)]
    ports = free_port(), free_port()
    with tempfile.TemporaryDirectory() as films, known_criticals(*OF_RTSPSRC):
        with Controlled(mounts(good, upstreams, ports, films)) as proxy:
            proxy.over, proxy.films, (proxy.ts, proxy.rtp) = threading.Event(), films, ports
            proxy.paths = [*(f'/bad{n}' for n in range(UPSTREAMS)), '/cached', '/ts', '/rtp', '/cast',
                           *(f'/films/{n}.ts' for n in range(FILMS)), '/none', '/films/../x', '*']
            with Rtsp(proxy.port) as rtsp:
                assert rtsp.request('DESCRIBE', proxy.url('/good'))[0] == 200
            before, memory = wait_for_rest(proxy), rss_kib(proxy)
            attack(proxy, seed, upstreams)
            for path in 'new0', 'new1', 'new2', 'cast':
                proxy.http('DELETE', f'/v1/mounts/{path}')
            wait_for_rest(proxy, before)
            assert rss_kib(proxy) < memory + MORE_KIB, (memory, rss_kib(proxy))
            assert proxy.stop() == 0
    for server in good, *upstreams:
        server.__exit__()


if __name__ == '__main__':
    run()
