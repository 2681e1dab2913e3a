# SPDX-License-Identifier: LGPL-2.1-or-later
"""What one client, and all clients together, may use: the key `limits`. Each refusal has its status,
is counted, and is logged; other clients are served."""

import re
import socket
import struct
import time
from contextlib import ExitStack, contextmanager

from control import CLIP_URI, Controlled, Watch, config, rss_kib
from good import SANITIZED
from proc import Rtsp
from proxy import matches, wait_until
from tap import Skip, run, test

TCP = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}
KIB_OF_A_CONNECTION = 256


@contextmanager
def serving(mount=None, **limits):
    """A proxy with these limits; underscores in their names stand for hyphens."""
    limits = {name.replace('_', '-'): value for name, value in limits.items()}
    with Controlled({'/cam': {'upstream': CLIP_URI, **(mount or {})}}, limits=limits) as proxy:
        yield proxy
        proxy.stop()


def connect(proxy, stack):
    return stack.enter_context(Rtsp(proxy.port))


def refused(proxy, reason):
    """Returns the number of refusals for this reason."""
    return proxy.metric(f'refusals_total{{reason="{reason}"}}')


def is_served(proxy):
    with Rtsp(proxy.port) as rtsp:
        assert rtsp.request('DESCRIBE', proxy.url())[0] == 200


def statuses(proxy, data, finish=True):
    """Sends the data on a new connection, and then its end. Returns the statuses of the answers."""
    with socket.create_connection(('127.0.0.1', proxy.port), 10) as connection:
        try:
            connection.sendall(data)
            if finish:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the proxy has closed the connection
        answer = b''
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
    return [int(status) for status in re.findall(rb'RTSP/1\.0 (\d+) ', answer)]


def head(method='OPTIONS', url='*', *lines, version='RTSP/1.0', cseq='CSeq: 1', end='\r\n'):
    return end.join((f'{method} {url} {version}', *([cseq] if cseq else []), *lines, '', '')).encode()


LONG = 'x' * 2048
GOOD = head()

# What is sent, the statuses of the answers, and the reason that is counted.
REQUESTS = (
    (GOOD, [200], None),
    (GOOD + GOOD, [200, 200], None),
    (b'\r\n\n' + GOOD, [200], None),
    (head(end='\n'), [200], None),
    (head(end='\n') + GOOD, [200, 200], None),
    (head('OPTIONS', '*', 'X-Odd: \xff\t'), [200], None),
    (head('OPTIONS', 'rtsp://x/' + 'y' * 2000), [200], None),
    (head('OPTIONS', '*', *['X: y'] * 63), [200], None),
    (head('UNKNOWN', 'rtsp://x/cam') + GOOD, [501, 200], None),
    (head('ANNOUNCE', 'rtsp://x/cam'), [405], None),
    (head('RECORD', 'rtsp://x/cam', 'Session: x') + GOOD, [405, 200], None),
    (head('PLAY', 'rtsp://x/cam', 'Session: 1234'), [454], None),
    # A request with limits.
    (head('OPTIONS', 'rtsp://x/' + LONG) + GOOD, [414], 'line'),
    (head('OPTIONS', 'rtsp://x/' + 'y' * 100000), [414], 'line'),
    (head('OPTIONS', '*', 'X: ' + LONG) + GOOD, [400], 'headers'),
    (head('OPTIONS', '*', *['X: y'] * 64) + GOOD, [400], 'headers'),
    (head('OPTIONS', '*', *['X: ' + 'y' * 1000] * 20) + GOOD, [400], 'headers'),
    (head('OPTIONS', '*', 'Content-Length: 65537') + GOOD, [413], 'body'),
    (head('OPTIONS', '*', 'Content-Length: 4294967294'), [413], 'body'),
    # A request that other parsers may read in another way.
    (head('OPTIONS', '*', 'Content-Length: -1') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '*', 'Content-Length: 0x10') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '*', 'Content-Length: 99999999999999999999') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '*', 'Content-Length: 0', 'Content-Length: 5') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '*', 'X: y', ' folded') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '*', 'X: a\rY: b') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '*', 'X: a\0b') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '*', 'no colon') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '*', ': no name') + GOOD, [400], 'malformed'),
    (head('OPTIONS', '* *') + GOOD, [400], 'malformed'),
    (b'OPTIONS * RTSP\r\n\r\n' + GOOD, [400], 'malformed'),
    (b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n' + GOOD, [400], 'malformed'),
    (head('\xd6PTIONS') + GOOD, [400], 'malformed'),
    (head('GET', '/', version='HTTP/1.1') + GOOD, [505], 'version'),
    (head(version='RTSP/2.0') + GOOD, [505], 'version'),
    (head(version='RTSP/1.1') + GOOD, [505], 'version'),
    # The library answers these, and ends the connection.
    (head(cseq=None) + GOOD, [400], None),
    (head(cseq='CSeq: -1') + GOOD, [400], None),
)


@test
def each_request_has_its_status():
    with serving() as proxy:
        for data, expected, reason in REQUESTS:
            before = refused(proxy, reason) if reason else 0
            got = statuses(proxy, data)
            assert got == expected, (data[:200], got, expected)
            assert not reason or refused(proxy, reason) == before + 1, (data[:200], reason)
        is_served(proxy)
        proxy.wait_for_line(r'client 127\.0\.0\.1:\d+ refused: the request line is too long')


@test
def the_answer_has_the_number_of_the_request():
    with serving() as proxy, Rtsp(proxy.port) as rtsp:
        rtsp.send(head('OPTIONS', '*', 'X: ' + LONG, cseq='CSeq: 77'))
        status, fields, _ = rtsp.answer()
        assert (status, fields['cseq'], fields['connection']) == (400, '77', 'close'), fields
        assert rtsp.closed()


@test
def headers_without_end_take_no_memory():
    with serving() as proxy:
        is_served(proxy)
        before = rss_kib(proxy)
        got = statuses(proxy, b'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n' + b'X: y\r\n' * 200000)
        assert got == [400], got
        assert SANITIZED or rss_kib(proxy) < before + 2048, (before, rss_kib(proxy))


# ---- time ----


@test
def half_a_request_is_answered_with_408():
    with serving(request_timeout='400ms') as proxy, ExitStack() as stack:
        for half in b'O', GOOD[:-1], head('SET_PARAMETER', '*', 'Content-Length: 9') + b'x: y':
            assert statuses(proxy, half, finish=False) == [408], half
        assert statuses(proxy, GOOD + b'OPT', finish=False) == [200, 408]
        crowd = [connect(proxy, stack) for _ in range(100)]
        for rtsp in crowd:
            rtsp.send(GOOD[:-1])
        assert all(rtsp.answer()[0] == 408 and rtsp.closed() for rtsp in crowd)
        assert refused(proxy, 'timeout') == 104, refused(proxy, 'timeout')
        # The log has few lines for an address.
        assert len(matches(proxy, 'refused: a request takes too long')) <= 10
        is_served(proxy)


@test
def a_byte_now_and_then_does_not_extend_the_time():
    with serving(request_timeout='500ms') as proxy, Rtsp(proxy.port) as rtsp:
        rtsp.socket.settimeout(0.05)
        deadline = time.monotonic() + 10
        for byte in b'OPTIONS rtsp://x/' + b'y' * 1000:
            try:
                rtsp.send(bytes((byte,)))
                if rtsp.answer()[0] == 408:
                    break
            except TimeoutError:
                assert time.monotonic() < deadline, 'the connection is still open'
        else:
            raise AssertionError('no answer')


@test
def half_a_frame_ends_the_connection():
    with serving(request_timeout='300ms') as proxy, Watch(proxy) as reader:
        reader.send(struct.pack('>cBH', b'$', 1, 100) + b'x')
        assert reader.closed()
        proxy.wait_for_line('reader .* out: /cam: a request takes too long')


@test
def a_connection_without_a_request_is_closed():
    with serving(idle_timeout='300ms', request_timeout='60s') as proxy, ExitStack() as stack:
        used = connect(proxy, stack)
        assert used.request('OPTIONS', '*')[0] == 200
        idle = [connect(proxy, stack) for _ in range(3)]
        idle[0].send(b'\r\n')
        idle[1].send_frame(0, bytes(10))
        for rtsp in idle:
            assert rtsp.closed()
        assert refused(proxy, 'idle') == 3
        assert used.request('OPTIONS', '*')[0] == 200


@test
def a_silent_connection_lives_as_long_as_its_session():
    with serving(no_session_timeout='400ms') as proxy, Watch(proxy) as reader, ExitStack() as stack:
        url, track = proxy.url(), proxy.url('/cam/stream=0')
        silent = {
            'OPTIONS': (('OPTIONS', '*'),),
            'GET_PARAMETER': (('GET_PARAMETER', '*'),),
            'unknown': (('X', '*'),),
            'none': (('DESCRIBE', proxy.url('/none')),),
            'DESCRIBE': (('DESCRIBE', url),),
            'no URL': (('SETUP', '*', TCP),),
            'no transport': (('DESCRIBE', url), ('SETUP', track, {'Transport': 'x'})),
            'no session': (('DESCRIBE', url), ('PLAY', url)),
            'TEARDOWN': (('DESCRIBE', url), ('SETUP', track, TCP), ('PLAY', url), ('TEARDOWN', url)),
        }
        connections = {}
        for name, requests in silent.items():
            connections[name] = connect(proxy, stack)
            for request in requests:
                connections[name].request(*request)
        waits = connect(proxy, stack)
        assert waits.request('SETUP', track, TCP)[0] == 200
        pauses, _ = play(proxy)
        assert pauses.request('PAUSE', url)[0] == 200
        for name, connection in connections.items():
            assert connection.closed(), name
        assert refused(proxy, 'idle') == len(silent)
        proxy.wait_for_line('client .* refused: it has no session, and no further request comes')
        reader.take()
        assert waits.request('OPTIONS', '*')[0] == 200
        assert pauses.request('PLAY', url)[0] == 200
        # When it has no session any more, it does not live longer either.
        assert waits.request('TEARDOWN', url)[0] == 200
        assert waits.closed()
        pauses.socket.close()


@test
def a_request_that_waits_keeps_its_connection():
    with socket.create_server(('127.0.0.1', 0)) as mute, \
            serving({'upstream': f'rtsp://127.0.0.1:{mute.getsockname()[1]}/x', 'start-timeout': '1s'},
                    no_session_timeout='100ms') as proxy, Rtsp(proxy.port) as rtsp:
        assert rtsp.request('DESCRIBE', proxy.url())[0] == 503
        assert rtsp.closed()


def queued(*ports):
    """Returns the bytes in the kernel's send and receive buffers of the connection of two ports."""
    with open('/proc/net/tcp', encoding='ascii') as table:
        for line in table:
            fields = line.split()
            if [int(end.partition(':')[2], 16) for end in fields[1:3] if ':' in end] == list(ports):
                return tuple(int(size, 16) for size in fields[4].split(':'))
    return None


def fill(proxy, rtsp):
    """Sends requests and reads no answer, until the kernel takes no further answers.

    Waits each time until the proxy has read all of them: more answers than it keeps would end the
    connection."""
    ports = proxy.port, rtsp.socket.getsockname()[1]
    while before := queued(*ports):
        rtsp.send(GOOD * 100)
        since = time.monotonic()
        while (now := queued(*ports)) and (mine := queued(*ports[::-1])):
            unread = now[1] or mine[0]
            if not unread and (now[0] == 0 or now[0] != before[0]):
                break
            if unread:
                since = time.monotonic()
            elif time.monotonic() > since + 1.5:
                return
            time.sleep(0.01)


@test(timeout=120)
def a_client_that_does_not_read_is_closed():
    with serving(write_timeout='200ms', requests_per_second=100000) as proxy, \
            Rtsp(proxy.port, kernel=65536) as rtsp:
        fill(proxy, rtsp)
        proxy.wait_for_line('client .* refused: the client does not read its responses', 60)
        assert refused(proxy, 'write') == 1
        wait_until(lambda: proxy.metric('connections') == 0, 10, 'the connection is closed')
        is_served(proxy)


# ---- numbers ----


@test
def connections_beyond_the_limit_are_answered_with_503():
    with serving(connections=5) as proxy, ExitStack() as stack:
        crowd = [connect(proxy, stack) for _ in range(5)]
        for rtsp in crowd:
            assert rtsp.request('OPTIONS', '*')[0] == 200
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.answer()[0] == 503
            assert rtsp.closed()
        assert refused(proxy, 'connections') == 1
        assert 'weir_connections 5\n' in proxy.get('/metrics').decode()
        crowd[0].socket.close()

        def admits():
            with Rtsp(proxy.port) as rtsp:
                return rtsp.request('OPTIONS', '*')[0] == 200

        wait_until(admits, 10, 'connections are accepted again')


@test
def a_connection_has_one_session():
    with serving() as proxy, Rtsp(proxy.port) as rtsp:
        track = proxy.url('/cam/stream=0')
        assert rtsp.request('DESCRIBE', proxy.url())[0] == 200
        assert rtsp.request('SETUP', track, TCP)[0] == 200
        first, rtsp.session = rtsp.session, None
        # Without an id, it is the one that the connection has.
        assert rtsp.request('SETUP', track, {'Transport': TCP['Transport'].replace('0-1', '2-3')})[0] == 200
        assert rtsp.session == first
        assert rtsp.request('TEARDOWN', proxy.url())[0] == 200
        rtsp.session = None
        assert rtsp.request('SETUP', track, TCP)[0] == 200


def play(proxy):
    """Returns a session that is set up, and the status of its PLAY."""
    rtsp = Rtsp(proxy.port)
    assert rtsp.request('DESCRIBE', proxy.url())[0] == 200
    assert rtsp.request('SETUP', proxy.url('/cam/stream=0'), TCP)[0] == 200
    return rtsp, rtsp.request('PLAY', proxy.url())[0]


def admits(proxy):
    rtsp, status = play(proxy)
    rtsp.socket.close()
    return status == 200


@test
def readers_beyond_the_limit_of_a_mount_get_453():
    with serving({'max-readers': 2}) as proxy:
        readers = [play(proxy) for _ in range(3)]
        assert [status for _, status in readers] == [200, 200, 453]
        late, first = readers[2][0], readers[0][0]
        assert refused(proxy, 'readers') == 1
        assert first.request('PAUSE', proxy.url())[0] == 200
        assert late.request('PLAY', proxy.url())[0] == 453
        assert first.request('PLAY', proxy.url())[0] == 200
        assert first.request('TEARDOWN', proxy.url())[0] == 200
        assert late.request('PLAY', proxy.url())[0] == 200
        # A place is free again after its reader has only closed its connection.
        late.socket.close()

        wait_until(lambda: admits(proxy), 10, 'a reader is admitted')
        for rtsp, _ in readers:
            rtsp.socket.close()


@test
def a_refused_setup_does_not_keep_the_place():
    """a reader whose SETUP was refused while it played gives its place back"""
    with serving({'max-readers': 1}) as proxy:
        reader, status = play(proxy)
        assert status == 200
        assert reader.request('SETUP', proxy.url('/cam/stream=0'), TCP)[0] == 455
        reader.socket.close()
        wait_until(lambda: admits(proxy), 10, 'another reader is admitted')


def settle(proxy, least, readers=()):
    """Waits until the proxy uses this much memory, and then no more each second."""
    before = [0]

    def rests():
        time.sleep(1.1)  # the proxy measures once a second
        for reader in readers:  # one that reads nothing for 10 s is closed
            reader.receive()
        before.append(proxy.metric('memory_bytes'))
        return before[-1] > least and before[-1] < before[-2] * 1.005

    wait_until(rests, 60 if SANITIZED else 30, 'memory is used')


def set_memory(proxy, percent):
    """Sets the ceiling so that this part of it is used now."""
    used = proxy.metric('memory_bytes')
    ceiling = max(used * 100 // percent, 16 << 20)
    told = proxy.hang_up(config({'/cam': {'upstream': CLIP_URI}}, limits={'memory': str(ceiling)}))
    assert told.startswith('reloaded'), told
    wait_until(lambda: proxy.metric('memory_limit_bytes') == ceiling, 5, 'the ceiling is set')


@test
def little_memory_refuses_new_clients_and_then_closes_readers():
    if SANITIZED:
        raise Skip('a sanitizer keeps memory that was freed')
    with serving(memory='8G', request_timeout='60s') as proxy, ExitStack() as stack:
        early = connect(proxy, stack)
        assert early.request('OPTIONS', '*')[0] == 200
        # Enough that the ceiling is not below the least value of the key.
        ballast = 'SET_PARAMETER * RTSP/1.0\r\nContent-Length: 60000\r\n\r\n' + 'x' * 50000
        for _ in range(300):
            connect(proxy, stack).send(ballast.encode())
        settle(proxy, 24 << 20)
        readers = [stack.enter_context(Watch(proxy)) for _ in range(3)]
        settle(proxy, 24 << 20, readers)
        set_memory(proxy, 92)
        proxy.wait_for_line('memory: .* no further readers are accepted', 20)
        with Rtsp(proxy.port) as rtsp:
            assert rtsp.answer()[0] == 503
        assert early.request('DESCRIBE', proxy.url())[0] == 503
        assert refused(proxy, 'memory') == 2
        for reader in readers:
            reader.take()
        assert readers[0].request('DESCRIBE', proxy.url())[0] == 200

        def closes():
            set_memory(proxy, 99)
            time.sleep(1.1)  # the next measure
            return matches(proxy, 'reader .* out: /cam: too little memory is left')

        wait_until(closes, 20, 'a reader is closed')
        set_memory(proxy, 20)
        proxy.wait_for_line('memory: .* readers are accepted again', 20)
        is_served(proxy)


@test
def requests_beyond_the_rate_wait():
    with serving(requests_per_second=20) as proxy, Rtsp(proxy.port) as rtsp:
        start = time.monotonic()
        for number in range(60):
            rtsp.send(head(cseq=f'CSeq: {number}'))
        got = [int(rtsp.answer()[1]['cseq']) for _ in range(60)]
        assert got == list(range(60)), got
        # 40 of them pass at once, and 20 more need a second.
        assert time.monotonic() - start > 0.9


@test
def frames_of_unknown_channels_are_dropped_and_counted():
    with serving(stray_frames=20) as proxy, Watch(proxy) as reader:
        for size in 0, 1, 1000, 65535:
            for _ in range(5):
                reader.send_frame(9, bytes(size))
        reader.take()
        assert reader.request('OPTIONS', '*')[0] == 200
        reader.send_frame(1, bytes(65535))  # longer than any report
        assert reader.closed()
        assert refused(proxy, 'frames') == 1


@test
def a_channel_that_a_later_setup_gave_up_is_unknown():
    with serving(stray_frames=20) as proxy, Rtsp(proxy.port) as reader:
        assert reader.request('DESCRIBE', proxy.url())[0] == 200
        for channels in '0-1', '4-5':
            transport = {'Transport': f'RTP/AVP/TCP;unicast;interleaved={channels}'}
            assert reader.request('SETUP', proxy.url('/cam/stream=0'), transport)[0] == 200
        for channel in [4, 5] * 20 + [0, 1] * 10:
            reader.send_frame(channel, bytes(8))
        assert reader.request('OPTIONS', '*')[0] == 200
        reader.send_frame(0, bytes(8))
        assert reader.closed()
        assert refused(proxy, 'frames') == 1


@test
def many_frames_take_no_memory():
    with serving(stray_frames=1000000, requests_per_second=100000) as proxy, Watch(proxy) as reader:
        before = rss_kib(proxy)
        # Of no channel, and as RTP of a track.
        for channel, size in (9, 60000), (0, 8000):
            frame = struct.pack('>cBH', b'$', channel, size) + bytes(size)
            for _ in range(2000):
                reader.send(frame)
                reader.frames.clear()
        assert reader.request('OPTIONS', '*')[0] == 200
        # A sanitizer keeps freed memory.
        assert SANITIZED or rss_kib(proxy) < before + 4096, (before, rss_kib(proxy))


@test
def a_connection_pins_little_memory():
    """an unauthenticated connection pins less than 256 KiB"""
    with serving(request_timeout='60s', idle_timeout='60s') as proxy, ExitStack() as stack:
        is_served(proxy)
        before, number = rss_kib(proxy), 64
        lines = ['X: ' + 'y' * 1000] * 15
        large = head('SET_PARAMETER', '*', *lines, 'Content-Length: 65536') + b'z' * 65535
        for _ in range(number):
            connect(proxy, stack).send(large)
        # The last connection has been read when all wait for more.
        wait_until(lambda: rss_kib(proxy) > before + number * 60, 10, 'the requests arrive')
        time.sleep(0.5)
        each = (rss_kib(proxy) - before) / number
        print(f'# {each:.0f} KiB for each connection')
        assert SANITIZED or each < KIB_OF_A_CONNECTION, each


# ---- the API ----


def api(proxy, data, wait=5):
    """Sends bytes to the API. Returns what comes until the connection is closed."""
    with socket.create_connection(('127.0.0.1', proxy.api_port), wait) as connection:
        answer = b''
        try:
            connection.sendall(data)
            while part := connection.recv(65536):
                answer += part
        except ConnectionError:
            pass
        return answer


@test
def api_requests_must_be_complete_in_time():
    with serving(request_timeout='400ms') as proxy:
        for data in (b'', b'GET', b'GET /v1/mounts HTTP/1.1\r\nHost: 127.0.0.1\r\n',
                     b'PUT /v1/mounts/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json'
                     b'\r\nContent-Length: 9\r\n\r\n{'):
            api(proxy, data)
        assert refused(proxy, 'timeout') == 4
        proxy.wait_for_line('client 127.0.0.1:.* refused: api: a request takes too long')
        proxy.get('/v1/mounts')


@test
def api_requests_are_bounded():
    with serving() as proxy:
        before = rss_kib(proxy)
        assert b' 200 ' not in api(proxy, b'GET /v1/mounts HTTP/1.1\r\n' + b'X: y\r\n' * 200000)
        assert SANITIZED or rss_kib(proxy) < before + 2048, (before, rss_kib(proxy))
        assert b' 413 ' in api(proxy, b'PUT /v1/mounts/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: '
                               b'application/json\r\nContent-Length: 65537\r\n\r\n' + bytes(65537)).split(b'\r\n')[0]
        proxy.get('/v1/mounts')


@test
def api_connections_beyond_the_limit_get_503():
    with serving(connections=4) as proxy, ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection(('127.0.0.1', proxy.api_port)))
                 for _ in range(4)]
        # The proxy has accepted all of them when it answers one that came later.
        wait_until(lambda: b' 503 ' in api(proxy, b''), 5, 'a connection is refused')
        is_served(proxy)
        for connection in crowd:
            connection.close()
        wait_until(lambda: proxy.http('GET', '/v1/mounts')[0] == 200, 5, 'the API answers again')


if __name__ == '__main__':
    run(at_once=4)
