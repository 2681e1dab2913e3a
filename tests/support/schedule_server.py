# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small server of broadcast titles, for clients: it sends a title's segments on multicast groups,
and answers DESCRIBE and GET_PARAMETER. Its answers can be made wrong."""

import bisect
import os
import re
import socket
import struct
import subprocess
import threading
import time

from sanitized import stock_environment

FRAME_MS = 10
SDP = '''v=0\r
o=- 1 1 IN IP4 127.0.0.1\r
s=film\r
t=0 0\r
'''
MEDIA = ('m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\n',
         'm=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/48000/1\r\n'
         'a=fmtp:97 streamtype=5;profile-level-id=2;mode=AAC-hbr;config=1188;sizelength=13;'
         'indexlength=3;indexdeltalength=3\r\n')
RATES = 90000, 48000


class Title:
    """The packets of an MP4 file with H.264 and, if `audio` is true, AAC at 48 kHz in one channel."""

    def __init__(self, path, folder, *, audio=True):
        files = [os.path.join(folder, f'track{track}') for track in range(2 if audio else 1)]
        branches = 'd.video_0 ! queue ! h264parse ! rtph264pay config-interval=-1', \
            'd.audio_0 ! queue ! aacparse ! rtpmp4gpay'
        line = f'filesrc location={path} ! qtdemux name=d'
        for track, (file, branch) in enumerate(zip(files, branches, strict=False)):
            line += (f' {branch} ssrc={1000 + track} seqnum-offset=0 timestamp-offset=0 mtu=1200'
                     f' ! rtpstreampay ! filesink location={file}')
        subprocess.run(['gst-launch-1.0', '-q', *line.split()], check=True, env=stock_environment())
        # Some payloaders begin with 1.
        self.packets = [[packet[:2] + struct.pack('>H', i % 65536) + packet[4:]
                         for i, packet in enumerate(self._read(file))] for file in files]
        self.times = [self._times(packets, rate)
                      for packets, rate in zip(self.packets, RATES, strict=False)]
        self.frames = max(times[-1] for times in self.times) // FRAME_MS + 1
        self.bytes = sum(len(packet) for packets in self.packets for packet in packets)

    @staticmethod
    def _read(path):
        with open(path, 'rb') as file:
            data = file.read()
        packets, at = [], 0
        while at < len(data):
            length = struct.unpack_from('>H', data, at)[0]
            packets.append(data[at + 2:at + 2 + length])
            at += 2 + length
        return packets

    @staticmethod
    def _times(packets, rate):
        """Returns when to send each packet, in ms: at its frame's decoding time."""
        shown = [struct.unpack_from('>I', packet, 4)[0] * 1000 // rate for packet in packets]
        frames, of = [], []
        for time_ms, packet in zip(shown, packets, strict=True):
            of.append(len(frames))
            if packet[1] & 0x80:
                frames.append(time_ms)
        decoded = sorted(frames)
        delay = max(a - b for a, b in zip(decoded, frames, strict=True))
        return [max(0, decoded[number] - delay) for number in of]

    def numbers(self, track, first, last):
        """Returns the packets of frames `first` to `last` - 1, as a range."""
        return (bisect.bisect_left(self.times[track], first * FRAME_MS),
                bisect.bisect_left(self.times[track], last * FRAME_MS))


def now_ms():
    return time.monotonic() * 1000


class Server:
    """Sends `title` by GDB with segments of `first` frames, 2 `first`, ...; with `patch_ms`, as a
    patch and one stream that began so long ago. With `groups` None it sends by unicast only."""

    def __init__(self, title, first, port, *, groups='239.77.1.', patch_ms=None, identity='0a1b'):
        self.title, self.first, self.port, self.groups = title, first, port, groups
        self.identity, self.patch_ms = identity, patch_ms
        self.prepare_s = 0  # time for which the title is not ready
        self.refusal = None  # status line and body of the answer to DESCRIBE
        self.change = lambda sdp: sdp
        self.run = str(time.monotonic_ns())  # another text says that the server has begun anew
        self.unicast = 0  # packets given
        self.requests = []
        self._base = now_ms()
        self._stop = threading.Event()
        self._segments = self._cut()
        self._socket = socket.socket()
        self._connections = []
        self._threads = []

    def _cut(self):
        if self.groups is None:
            return []
        if self.patch_ms is not None:
            return [(0, self.title.frames, self.title.frames)]
        segments, at, length = [], 0, self.first
        while at < self.title.frames:
            segments.append((at, min(at + length, self.title.frames), length))
            at, length = at + length, length * 2
        return segments

    def __enter__(self):
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(('127.0.0.1', self.port))
        self._socket.listen()
        self._base = now_ms() - (self.patch_ms or 0)
        for target in (self._send, self._accept):
            self._threads.append(threading.Thread(target=target, daemon=True))
            self._threads[-1].start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for connection in self._connections + [self._socket]:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()
        for thread in self._threads:
            thread.join()

    # ---- groups ----

    def _send(self):
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        until = self._base
        while not self._stop.wait(0.001):
            start, until = until, now_ms()
            for number, (first, last, period) in enumerate(self._segments):
                if self.patch_ms is None or until - self._base < self.title.frames * FRAME_MS:
                    self._send_segment(out, number, (first, last, period), start, until)
        out.close()

    def _send_segment(self, out, number, segment, start, until):
        first, last, period = segment
        cycle = period * FRAME_MS
        run = (start - self._base) // cycle
        for at in (run, run + 1):
            offset = self._base + at * cycle - first * FRAME_MS
            for track in range(len(self.title.packets)):
                times = self.title.times[track]
                low, high = self.title.numbers(track, first, last)
                begin = bisect.bisect_left(times, start - offset, low, high)
                end = bisect.bisect_left(times, until - offset, low, high)
                for packet in self.title.packets[track][begin:end]:
                    out.sendto(packet, (f'{self.groups}{number + 1}', 6000 + 2 * track))

    # ---- requests ----

    def _accept(self):
        while not self._stop.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._threads.append(threading.Thread(
                target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection):
        data = b''
        try:
            while not self._stop.is_set():
                while b'\r\n\r\n' not in data:
                    more = connection.recv(65536)
                    if not more:
                        return
                    data += more
                head, data = data.split(b'\r\n\r\n', 1)
                length = re.search(rb'content-length: *(\d+)', head, re.I)
                length = int(length[1]) if length else 0
                while len(data) < length:
                    data += connection.recv(65536)
                self._answer(connection, head.decode(), data[:length].decode())
                data = data[length:]
        except OSError:
            pass

    def _answer(self, connection, head, body):
        self.requests.append((head, body))
        sequence = re.search(r'cseq: *(\d+)', head, re.I)[1]
        if head.startswith('DESCRIBE'):
            status, headers, content = self._describe(head)
        else:
            status, content = '200 OK', self._read(body)
            headers = f'Content-Type: application/x-weir-packets\r\nX-Weir-Run: {self.run}\r\n'
        connection.sendall(f'RTSP/1.0 {status}\r\nCSeq: {sequence}\r\n{headers}Content-Length: '
                           f'{len(content)}\r\n\r\n'.encode() + content)

    def _read(self, body):
        content = b''
        n = 0
        for line in body.split('\r\n')[:-1]:
            track, first, last = map(int, re.fullmatch(r'(\d+) (\d+)-(\d+)', line).groups())
            for number in range(first, last + 1):
                packet = self.title.packets[track][number]
                if n < 256 and len(content) + 8 + len(packet) <= 256 << 10:
                    content += struct.pack('>IHH', number, track, len(packet)) + packet
                    n += 1
        self.unicast += n
        return content

    def _describe(self, head):
        if self.refusal:
            return self.refusal[0], 'Content-Type: text/plain\r\n', self.refusal[1].encode()
        if now_ms() - self._base < self.prepare_s * 1000:
            return '503 Service Unavailable', 'Retry-After: 1\r\n', b'being prepared\r\n'
        sdp = SDP + (self._schedule() if 'x-weir-schedule' in head else '')
        for media, packets in zip(MEDIA, self.title.packets, strict=False):
            sdp += media + f'a=x-weir-packets:{len(packets)}\r\n'
        return ('200 OK', f'Content-Type: application/sdp\r\nETag: "{self.identity}"\r\n'
                f'X-Weir-Run: {self.run}\r\n',
                self.change(sdp).encode())

    def _packets(self, first, last):
        ranges = [self.title.numbers(track, first, last) for track in range(len(self.title.packets))]
        return ','.join(f'{low}-{high - 1}' if high > low else '-' for low, high in ranges)

    def _schedule(self):
        now = now_ms()
        length = self.first * FRAME_MS
        play = now if self.patch_ms is not None or self.groups is None else \
            self._base + -(-(now - self._base) // length) * length
        lines = [f'a=x-weir-schedule:1 id={self.identity} scheme=gdb now={now:.3f} '
                 f'play={play:.3f} frames={self.title.frames} frame={FRAME_MS}000000']
        ends = []
        for number, (first, last, period) in enumerate(self._segments):
            cycle = period * FRAME_MS
            start = self._base + (play + first * FRAME_MS - self._base + 0.5) // cycle * cycle
            if self.patch_ms is not None:
                first = int(now + 20 - self._base) // FRAME_MS + 1
                start = self._base + first * FRAME_MS
            lines.append(f'a=x-weir-channel:{number} group={self.groups}{number + 1} port=6000 '
                         'ttl=1')
            ends.append(f'a=x-weir-send:{number} start={self._base:.3f} period={cycle} repeat=* '
                        f'frames={self._segments[number][0]}-{last - 1} '
                        f'packets={self._packets(self._segments[number][0], last)}')
            if first < last:
                ends.append(f'a=x-weir-receive:{number} join={start:.3f} '
                            f'leave={start + (last - first) * FRAME_MS:.3f} '
                            f'frames={first}-{last - 1} packets={self._packets(first, last)}')
        return '\r\n'.join(lines + [line for line in ends if 'send' in line]
                           + [line for line in ends if 'receive' in line]) + '\r\n'
