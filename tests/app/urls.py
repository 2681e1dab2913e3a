# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every method, with every URL that a request line can have or lack, over both kinds of connection,
with and without users, before, in and after a session. The proxy answers each request, and readers
of another connection miss no packet."""

import contextlib
import hashlib
import threading

from good import PATIENCE, Good, play_on
from proc import Rtsp
from scripted import Server
from secured import Secure, TlsRtsp
from tap import run, test

PUBLISHED = b'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n' \
            b'a=rtpmap:96 H264/90000\r\na=control:streamid=0\r\n'
TCP = {'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1'}

NEED_URL = ('DESCRIBE', 'announce', 'ANNOUNCE', 'SETUP', 'PLAY', 'PAUSE', 'RECORD', 'TEARDOWN')
NEED_NONE = ('OPTIONS', 'GET_PARAMETER', 'SET_PARAMETER')
UNKNOWN = ('REDIRECT', 'PLAY_NOTIFY', 'X')

# None of them names something that can be read, and none is the path that is published.
WRONG = (
    b'rtsp://', b'rtsp:', b'rtsp:/', b'rtsp:///', b'rtsp:///none', b'rtsp://127.0.0.1',
    b'rtsp://127.0.0.1/', b'rtsp://127.0.0.1:8554', b'rtsp://127.0.0.1:8554/', b'rtsp://127.0.0.1?',
    b'rtsp://127.0.0.1?x', b'rtsp://127.0.0.1/?x', b'rtsp://127.0.0.1?/stream=0', b'rtsp://?',
    b'rtsp://127.0.0.1#good', b'rtsp://127.0.0.1:', b'rtsp://127.0.0.1:/none',
    b'rtsp://127.0.0.1:99999/none', b'rtsp://127.0.0.1:-1/none', b'rtsp://127.0.0.1:x/none',
    b'rtsp://[', b'rtsp://[]', b'rtsp://[::1', b'rtsp://[::1]', b'rtsp://[::1]x/none', b'rtsp://]/none',
    b'rtsp://@', b'rtsp://:@', b'rtsp://@/none', b'rtsp://a:b@/none', b'rtsp://a:b@127.0.0.1',
    b'rtsp://a:b:c@d@127.0.0.1/none', b'rtsp://127.0.0.1//', b'rtsp://127.0.0.1///none//',
    b'rtsp://127.0.0.1/none/../..', b'rtsp://127.0.0.1/%', b'rtsp://127.0.0.1/%00',
    b'rtsp://127.0.0.1/%2e%2e/%zz', b'rtsp://127.0.0.1/*', b'rtsp://127.0.0.1/none?token=',
    b'rtsp://127.0.0.1/none?token=x&token=y', b'rtsp://127.0.0.1/?layers=&delay=',
    b'rtsp://127.0.0.1/none?' + b'&' * 500, b'rtsp://127.0.0.1/' + b'/' * 1500,
    b'rtsp://127.0.0.1/' + b'n' * 1500, b'rtsp://' + b'h' * 1500, b'rtsp://' + b'h' * 1500 + b'/none',
    b'RTSP://127.0.0.1', b'rtspu://127.0.0.1', b'rtspt://', b'rtsph://127.0.0.1', b'rtsps://127.0.0.1',
    b'rtsp-sdp://127.0.0.1', b'rtsp-schedule://127.0.0.1/none', b'http://127.0.0.1/none', b'http://',
    b'file:///etc/passwd', b'sip:none@127.0.0.1', b'://', b':', b'//', b'//127.0.0.1/none', b'/', b'/?',
    b'/none', b'none', b'none?x', b'?', b'?x', b'#', b'.', b'..', b'**', b'*/', b'/*', b'*?', b'\\', b'%',
    b'"', b'\xff', b'/\xff\xfe', b'rtsp://\xff/none', 'rtsp://é/ü'.encode(), b'RTSP/1.0')

# The request line has no URL, or one that ends too late or is no text.
MALFORMED = (b'', b' ', b'\t', b'\0', b'*\0', b'rtsp://127.0.0.1/\0', b'\x01', b'\x7f', b'a b', b'* *',
             b'rtsp://127.0.0.1/no ne')
TOO_LONG = (b'rtsp://127.0.0.1/' + b'n' * 5000, b'*' * 5000)


def ask(rtsp, method, url):
    """Returns the status of a request that has all headers any method needs."""
    rtsp.cseq += 1
    head = [b'%s %s RTSP/1.0' % (method.encode(), url), b'CSeq: %d' % rtsp.cseq,
            b'Transport: RTP/AVP/TCP;unicast;interleaved=8-9', b'Content-Type: application/sdp']
    if rtsp.session:
        head.append(b'Session: ' + rtsp.session.encode())
    body = PUBLISHED if method == 'ANNOUNCE' else b''
    head.append(b'Content-Length: %d' % len(body))
    rtsp.send(b'\r\n'.join(head) + b'\r\n\r\n' + body)
    status = rtsp.answer()[0]
    rtsp.frames.clear()
    return status


# ---- the state of the connection ----


def before(_rtsp, _url):
    pass


def within(rtsp, url):
    assert rtsp.request('DESCRIBE', url)[0] == 200
    assert rtsp.request('SETUP', f'{url}/stream=0', TCP)[0] == 200
    assert rtsp.request('PLAY', url)[0] == 200


def after(rtsp, url):
    within(rtsp, url)
    assert rtsp.request('TEARDOWN', url)[0] == 200
    rtsp.session = None


def stale(rtsp, url):
    """Requests have the id of a session that has ended."""
    within(rtsp, url)
    session = rtsp.session
    assert rtsp.request('TEARDOWN', url)[0] == 200
    rtsp.session = session


def publishing(rtsp, url):
    url = url.replace('/good', '/live')
    kind = {'Content-Type': 'application/sdp'}
    # The last publisher of the mount leaves when its connection has ended.
    while (status := rtsp.request('ANNOUNCE', url, kind, PUBLISHED)[0]) != 200:
        assert status == 503, status
    assert rtsp.request('SETUP', f'{url}/streamid=0', TCP)[0] == 200
    assert rtsp.request('RECORD', url)[0] == 200


class Asker:
    """Asks on connections in one state, and opens another one when the proxy has closed one."""

    def __init__(self, proxy, secure, state):
        self.proxy, self.secure, self.state, self.rtsp = proxy, secure, state, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        if self.rtsp:
            self.rtsp.socket.close()
        self.rtsp = None

    def ask(self, method, url):
        if not self.rtsp:
            self.rtsp = TlsRtsp(self.proxy) if self.secure else Rtsp(self.proxy.port)
            self.state(self.rtsp, self.proxy.tls_url('/good') if self.secure else self.proxy.url('/good'))
        try:
            return ask(self.rtsp, method, url)
        except (ConnectionError, TimeoutError) as error:
            assert self.proxy.running(), (method, url, self.state)
            raise AssertionError(f'no answer to {method} {url[:80]} {self.state}: {error}') from error


def expected(method, url, state):
    """Returns the statuses that the answer may have."""
    # A SETUP or an ANNOUNCE begins a session, whatever it says about one.
    if state is stale and method.upper() not in ('SETUP', 'ANNOUNCE'):
        return {400, 405, 454, 501}
    if method in UNKNOWN:
        return {501} if url == b'*' else {400, 501}
    if method in NEED_URL:
        if url == b'*':
            return {400}
        # A publisher may leave, pause, and record again, whatever URL its requests have.
        left = {200, 454} if state is publishing and method in ('PAUSE', 'RECORD', 'TEARDOWN') else set()
        return {*left, *range(400, 500)}
    return {200, *range(400, 500)}


def check_all(proxy, secure, state):
    wrong = []
    with Asker(proxy, secure, state) as asker:
        for url in (b'*', *WRONG):
            for method in (*NEED_URL, *NEED_NONE, *UNKNOWN):
                status = asker.ask(method, url)
                if status not in expected(method, url, state):
                    wrong.append((method, url, status))
                if method in ('ANNOUNCE', 'TEARDOWN') and state in (within, publishing):
                    asker.leave()  # it may have ended the state
        for status, urls in ((400, MALFORMED), (414, TOO_LONG)):
            for url in urls:
                for method in ('ANNOUNCE', 'OPTIONS', 'PLAY', 'X'):
                    got = asker.ask(method, url)
                    if got != status:
                        wrong.append((method, url[:80], got))
                    asker.leave()
    assert not wrong, (state.__name__, secure, wrong)


@contextlib.contextmanager
def served(**top):
    """A proxy whose readers over UDP and TCP must not miss a packet."""
    with Server(play_on) as upstream:
        mounts = {'/good': {'upstream': upstream.url, 'transport': 'tcp'}, '/live': {'upstream': 'publish'}}
        with Secure(mounts, env={'G_DEBUG': 'fatal-criticals'},
                    limits={'requests-per-second': 100000}, **top) as proxy:
            proxy.over = threading.Event()
            goods = [Good(proxy, udp) for udp in (False, True)]
            for good in goods:
                good.start()
            yield proxy
            seen = [good.packets for good in goods]
            with Rtsp(proxy.port, timeout=PATIENCE) as rtsp:
                assert rtsp.request('DESCRIBE', proxy.url('/good'))[0] == 200
            proxy.over.set()
            for good in goods:
                good.join(PATIENCE + 5)
            assert not any(good.wrong for good in goods), [good.wrong for good in goods]
            assert all(packets > 10 for packets in seen), seen
            assert proxy.stop() == 0


USERS = [{'name': 'any', 'networks': ['127.0.0.0/8'],
          'permissions': [{'action': 'read', 'path': '/good'}, {'action': 'publish', 'path': '/live'}]},
         {'name': 'viewer', 'hash': 'sha256:' + hashlib.sha256(b'secret').hexdigest(),
          'permissions': [{'action': 'read'}]}]


def each_state(top):
    with served(**top) as proxy:
        for secure in False, True:
            for state in before, within, after, stale, publishing:
                check_all(proxy, secure, state)


@test(timeout=120)
def each_method_with_each_url_is_answered():
    each_state({})


@test(timeout=120)
def each_method_with_each_url_is_answered_where_users_are_named():
    each_state({'users': USERS})


@test
def a_request_of_33_bytes_is_answered():
    """ANNOUNCE * from anybody, as the first request of a connection, is answered with 400"""
    with Secure({'/cam': {'upstream': 'publish'}}, users=USERS[1:]) as proxy:
        for secure in False, True:
            with TlsRtsp(proxy) if secure else Rtsp(proxy.port) as rtsp:
                rtsp.send(b'ANNOUNCE * RTSP/1.0\r\nCSeq: 1\r\n\r\n')
                assert rtsp.answer()[0] == 400
        assert proxy.stop() == 0


if __name__ == '__main__':
    run()
