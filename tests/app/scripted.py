# SPDX-License-Identifier: LGPL-2.1-or-later
"""An RTSP server that sends exactly the packets that a test specifies."""

import re
import socket
import ssl
import struct
import threading


VIDEO, AUDIO = 0, 1
SDP = {
    VIDEO: 'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track0\r\n',
    AUDIO: 'm=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\na=control:track1\r\n',
}
SSRC = 0x5eed0000
KEY_PICTURE = b'\x65\x88' + bytes(198)  # H.264: the first slice of an IDR picture
PICTURE = b'\x41' + bytes(199)
FEEDBACK = 206  # RTCP payload type: payload-specific feedback


# WWW-Authenticate headers that the proxy cannot answer.
CHALLENGES = (
    'Digest', 'Digest ', 'Digest x', 'Digest ,', 'digest realm', 'Digest realm = "x"',
    'Digest realm= "x"', 'Digest realm=  x', 'Digest,realm="x"', 'Digestive', 'Digest =x',
    'Digest realm="x', 'Digest realm="', 'Digest realm="x\\', 'Digest realm="x", nonce="y", Digest',
    'Basic', 'Basic realm= "x"', 'Basic realm="x", Digest', 'Other x, Digest y', ',', '=', '"', '',
    'Digest realm="%s%n", nonce="\\"\\\\"', f'Digest realm="{"x" * 3900}", nonce="y"',
    'Digest realm="x", nonce="y", algorithm=SHA-512, stale=TRUE', 'Digest stale=TRUE',
    'Other a=b, Digest$c="d"', 'Other realm="x Digest"')


def rtp(seq, timestamp, payload=PICTURE, track=VIDEO, ssrc=SSRC):
    return struct.pack('>BBHII', 0x80, 96 + track, seq & 0xffff, timestamp & 0xffffffff,
                       ssrc + track) + payload


def sender_report(ntp, timestamp, track=VIDEO):
    return struct.pack('>BBHIQIII', 0x80, 200, 6, SSRC + track, ntp, timestamp, 0, 0)


def reports(rtcp):
    """Returns a receiver report's blocks as {SSRC: (fraction, lost, highest)}."""
    assert rtcp[1] == 201, rtcp
    blocks = {}
    for number in range(rtcp[0] & 31):
        ssrc, lost, highest = struct.unpack_from('>III', rtcp, 8 + 24 * number)
        blocks[ssrc] = (lost >> 24, lost & 0xffffff, highest)
    return blocks


def feedback(rtcp):
    """Returns the payload-specific feedback of a compound packet, as (format, media SSRC, rest)."""
    found = []
    while len(rtcp) >= 12:
        size = 4 * (1 + int.from_bytes(rtcp[2:4], 'big'))
        if rtcp[1] == FEEDBACK:
            found.append((rtcp[0] & 31, int.from_bytes(rtcp[8:12], 'big'), rtcp[12:size]))
        rtcp = rtcp[size:]
    return found


# ---- functions for the `mangle` of a server ----


def refusing(*lines, methods=('OPTIONS', 'DESCRIBE'), status='401 Unauthorized'):
    """Returns a function that answers these methods with a status and header lines."""
    head = ''.join(f'{line}\r\n' for line in lines)

    def mangle(method, answer):
        if method not in methods:
            return answer
        cseq = re.search(rb'CSeq: (\d+)', answer)[1].decode()
        return f'RTSP/1.0 {status}\r\nCSeq: {cseq}\r\n{head}\r\n'.encode()

    return mangle


def changing(name, value):
    """Returns a function that replaces a header's value in all answers that have the header."""
    return lambda _, answer: re.sub(name + rb': [^\r]*', name + b': ' + value, answer)


def removing(name):
    return lambda _, answer: re.sub(name + rb': [^\r]*\r\n', b'', answer)


def adding(line):
    return lambda _, answer: answer.replace(b'\r\n', b'\r\n' + line + b'\r\n', 1)


def describing(description):
    def mangle(method, answer):
        if method != 'DESCRIBE':
            return answer
        head = answer.partition(b'\r\n\r\n')[0] + b'\r\n\r\n'
        return changing(b'Content-Length', b'%d' % len(description))(method, head) + description

    return mangle


# ---- the server ----


class Session:
    """One connection. `.asked` lists the methods of its requests, `.requests` the requests as
    (method, URI, headers), `.answers` the heads of the client's answers, `.rtcp` the client's RTCP
    as (track, packet)."""

    def __init__(self, server, connection):
        self.server, self.connection = server, connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sockets, self.addresses, self.rtcp, self.asked = {}, {}, [], []
        self.requests, self.answers = [], []
        self.left = threading.Event()
        self.lock = threading.Lock()

    def send(self, track, packet, rtcp=False, piece=None):
        """Sends a packet; over TCP in pieces of `piece` bytes."""
        if track in self.sockets:
            try:
                self.sockets[track][rtcp].sendto(packet, self.addresses[track][rtcp])
            except OSError:
                if not self.left.is_set():
                    raise
            return
        data = struct.pack('>cBH', b'$', 2 * track + rtcp, len(packet)) + packet
        with self.lock:
            for start in range(0, len(data), piece or len(data)):
                self.connection.sendall(data[start:start + (piece or len(data))])

    def _answer(self, cseq, *lines, status='200 OK', body=''):
        head = ''.join(f'{line}\r\n' for line in (f'CSeq: {cseq}', *lines))
        if body:
            head += f'Content-Length: {len(body)}\r\n'
        answer = f'RTSP/1.0 {status}\r\n{head}\r\n{body}'.encode()
        if self.server.mangle:
            answer = self.server.mangle(self.asked[-1], answer)
        with self.lock:
            self.connection.sendall(answer)

    def _open(self, track, transport):
        client = [int(port) for port in transport.split('client_port=')[1].split('-')]
        self.sockets[track] = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in (0, 1)]
        for each in self.sockets[track]:
            each.bind(('127.0.0.1', 0))
        self.addresses[track] = [('127.0.0.1', port) for port in client]
        threading.Thread(target=self._listen, args=(track,), daemon=True).start()
        ports = '-'.join(str(each.getsockname()[1]) for each in self.sockets[track])
        return f'Transport: {transport};server_port={ports};ssrc={SSRC + track:08X}'

    def _listen(self, track):
        try:
            while data := self.sockets[track][1].recv(2000):
                self.rtcp.append((track, data))
        except OSError:
            pass

    def _handle(self, method, uri, headers):
        cseq = headers.get('cseq', '0')
        self.asked.append(method)
        self.requests.append((method, uri, headers))
        if method in self.server.deaf_to:
            return
        if method == 'DESCRIBE':
            tracks = ''.join(self.server.sdp[track] for track in self.server.tracks)
            self._answer(cseq, f'Content-Base: {uri}/', 'Content-Type: application/sdp',
                         body=f'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n{tracks}')
        elif method == 'SETUP':
            transport, track = headers['transport'], int(uri[-1]) if uri[-1] in '01' else 0
            line = f'Transport: {transport};ssrc={SSRC + track:08X}'
            if 'TCP' not in transport:
                line = self._open(track, transport)
            self._answer(cseq, f'Session: abc;timeout={self.server.timeout}', line)
        elif method == 'PLAY':
            assert headers['session'] == 'abc', headers
            if self.server.early:
                self.server.early(self)
            self._answer(cseq, 'Session: abc')
            threading.Thread(target=self.server.play, args=(self,), daemon=True).start()
        else:
            if method == 'TEARDOWN':
                self.left.set()
                if self.server.late:
                    self.server.late(self)
            self._answer(cseq, 'Session: abc')

    def _take(self, buffer):
        """Handles the first message in the buffer. Returns the rest, or None if it is
        incomplete."""
        if buffer[:1] == b'$':
            if len(buffer) < 4 or len(buffer) < 4 + (size := buffer[2] << 8 | buffer[3]):
                return None
            self.rtcp.append((buffer[1] // 2, buffer[4:4 + size]))
            return buffer[4 + size:]
        head, end, rest = buffer.partition(b'\r\n\r\n')
        if not end:
            return None
        if head.startswith(b'RTSP/'):
            self.answers.append(head.decode())
            return rest
        first, *lines = head.decode().split('\r\n')
        pairs = (line.partition(':') for line in lines)
        method, uri, _ = first.split(' ')
        self._handle(method, uri, {name.lower(): value.strip() for name, _, value in pairs})
        return rest

    def run(self):
        buffer = b''
        try:
            while data := self.connection.recv(65536):
                buffer += data
                while buffer and (rest := self._take(buffer)) is not None:
                    buffer = rest
        except OSError:
            pass
        finally:
            self.left.set()
            for pair in self.sockets.values():
                for each in pair:
                    each.close()
            self.connection.close()


class Server:
    """Calls `play` in a thread with the session of each client that plays, `early` before it
    answers PLAY and `late` before it answers TEARDOWN. Does not answer the methods in `deaf_to`.
    Sends what `mangle` returns for a method and its answer instead of the answer."""

    def __init__(self, play=None, tracks=(VIDEO,), early=None, late=None, deaf_to=(),
                 timeout=60, mangle=None, sdp=SDP):
        self.play = play or (lambda session: None)
        self.tracks, self.early, self.late, self.deaf_to = tracks, early, late, deaf_to
        self.timeout, self.mangle, self.sdp = timeout, mangle, sdp
        self.sessions = []
        self._socket = socket.create_server(('127.0.0.1', 0))
        self.url = f'rtsp://127.0.0.1:{self._socket.getsockname()[1]}/s'
        threading.Thread(target=self._accept, daemon=True).start()

    def accept(self):
        return self._socket.accept()[0]

    def _accept(self):
        while True:
            try:
                connection = self.accept()
            except (ssl.SSLError, ConnectionError):
                continue
            except OSError:
                return
            session = Session(self, connection)
            self.sessions.append(session)
            threading.Thread(target=session.run, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
