# SPDX-License-Identifier: LGPL-2.1-or-later
"""A film in every container, and a player that gets its pictures from a title."""

import json
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
from functools import lru_cache

from proc import Rtsp, interop
from tap import SLOWER, Skip

FPS = 25
SECONDS = 20
TS_START = 0.7  # s; the first picture's time in FFmpeg's MPEG-TS


def ffmpeg(*words, data=None):
    program = shutil.which('ffmpeg')
    if not program:
        raise Skip('ffmpeg is not on the PATH')
    done = subprocess.run([program, '-nostdin', '-loglevel', 'error', *words], input=data,
                          capture_output=True, timeout=50 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@lru_cache
def folder():
    """Returns a folder with one film in every container; a keyframe every second, all pictures
    differ."""
    directory = tempfile.TemporaryDirectory()
    films = os.path.join(directory.name, 'films')
    os.makedirs(os.path.join(films, 'sub dir'))
    film = os.path.join(films, 'film.mp4')
    ffmpeg('-f', 'lavfi', '-i', f'testsrc=size=320x180:rate={FPS}', '-f', 'lavfi', '-i',
           'sine=frequency=440:sample_rate=48000', '-t', str(SECONDS), '-c:v', 'libx264', '-preset',
           'ultrafast', '-pix_fmt', 'yuv420p', '-g', str(FPS), '-c:a', 'aac', film)
    for name in 'film.mkv', 'film.ts':
        ffmpeg('-i', film, '-c', 'copy', os.path.join(films, name))
    ffmpeg('-i', film, '-c:v', 'copy', '-an', '-f', 'h264', os.path.join(films, 'film.h264'))
    shutil.copy(film, os.path.join(films, 'sub dir', 'film.mp4'))
    shutil.copy(film, os.path.join(directory.name, 'secret.mp4'))
    return directory, films


def random_film(seconds, size):
    """Returns random bytes that an MP4 header says to last so long."""
    header = struct.pack('>I4s4s', 12, b'ftyp', b'isom')
    header += struct.pack('>I4sI4s12xII', 36, b'moov', 28, b'mvhd', 1000, 1000 * seconds)
    header += struct.pack('>I4s', 0, b'mdat')
    return header + random.Random(7).randbytes(size - len(header))


def path_of(*names):
    return os.path.join(folder()[1], *names)


def url_of(films):
    return f'file://{films}/'


def pictures(words, data=None):
    """Returns the MD5 of each decoded picture."""
    lines = ffmpeg(*words, '-an', '-f', 'framemd5', '-', data=data).decode().splitlines()
    return [line.split(',')[-1].strip() for line in lines if not line.startswith('#')]


def hashes(url, *words, kind='v'):
    """Returns the hashes of decoded pictures, or of parts of the sound."""
    done = subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', *words, '-i', url, '-map', f'0:{kind}', '-vsync',
                           'passthrough', '-f', 'framemd5', '-'], capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    return [line.split(',')[-1].strip() for line in done.stdout.splitlines() if line[:1].isdigit()]


@lru_cache
def film_pictures():
    return pictures(['-i', path_of('film.mp4')])


class Player:
    """Plays the tracks of a title over TCP."""

    def __init__(self, proxy, name='film.mp4', mount='/films'):
        self.rtsp = Rtsp(proxy.port, timeout=20)
        self.url = proxy.url(f'{mount}/{name}')
        self.packets = []  # of the first track: (seq, time, marker, payload)
        self.reports = []  # of senders: (track, wall-clock time in s, RTP time)
        self.bye = set()
        status, self.headers, body = self.rtsp.request('DESCRIBE', self.url)
        self.status, self.sdp = status, body.decode()
        self.tracks = self.sdp.count('\nm=')
        if status != 200:
            return
        for number in range(self.tracks):
            answer = self.rtsp.request('SETUP', f'{self.url}/stream={number}', {
                'Transport': f'RTP/AVP/TCP;unicast;interleaved={2 * number}-{2 * number + 1}'})
            assert answer[0] == 200, answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.rtsp.socket.close()

    def play(self, **headers):
        """Returns the position at which playback begins, in seconds."""
        status, headers, _ = self.rtsp.request('PLAY', self.url, headers)
        assert status == 200, status
        self.packets = []
        self.first = int(re.search(r'seq=(\d+)', headers['rtp-info'])[1])
        self.answer = headers
        return float(re.search(r'npt=([\d.]+)-', headers['range'])[1])

    def after_start(self, packet):
        """Returns the seconds from the start that the answer gives to a packet of the first
        track."""
        start = int(re.search(r'stream=0;seq=\d+;rtptime=(\d+)', self.answer['rtp-info'])[1])
        return (packet[1] - start) % 2**32 / 90000

    def pause(self):
        assert self.rtsp.request('PAUSE', self.url)[0] == 200
        waiting, self.rtsp.frames = self.rtsp.frames, []
        for channel, data in waiting:
            self._take(channel, data)

    def teardown(self):
        assert self.rtsp.request('TEARDOWN', self.url)[0] == 200
        self.rtsp.session = None

    def _take(self, channel, data):
        if channel % 2:
            self.bye |= {channel} if has_bye(data) else set()
            if data[1] == 200:
                ntp, at = struct.unpack('!QI', data[8:20])
                self.reports.append((channel // 2, ntp / 2**32, at))
        elif channel == 0:
            marker_type, seq, at = struct.unpack('!BHI', data[1:8])
            if (seq - self.first) % 65536 < 32768:  # else it was sent before the answer
                self.packets.append((seq, at, marker_type >> 7, data[12:]))

    def read_frame(self):
        self._take(*self.rtsp.frame())

    def read(self, n):
        """Reads until n pictures are complete."""
        while sum(packet[2] for packet in self.packets) < n:
            self.read_frame()

    def read_to_end(self):
        while len(self.bye) < self.tracks:
            self.read_frame()

    def pictures(self):
        """Returns the complete pictures since the last PLAY. Fails if a packet is missing."""
        assert self.packets[0][0] == self.first, (self.packets[0][0], self.first)
        last = max(i for i, packet in enumerate(self.packets) if packet[2])
        whole = self.packets[:last + 1]
        for (a, *_), (b, *_) in zip(whole, whole[1:]):
            assert b == (a + 1) % 65536, f'{a} is followed by {b}'
        return pictures(['-f', 'h264', '-i', '-'], annex_b(whole))


def first_keyframe(packets):
    """Returns the first packet of the first IDR picture."""
    return next(packet for packet in packets
                if 5 in (packet[3][0] & 31, (packet[3][0] & 31 == 28) * (packet[3][1] & 31)))


def has_bye(data):
    while len(data) >= 4:
        if data[1] == 203:
            return True
        data = data[4 * (struct.unpack('!H', data[2:4])[0] + 1):]
    return False


def annex_b(packets):
    """Converts RFC 6184 packets to NAL units with start codes."""
    out = b''
    for _, _, _, payload in packets:
        kind = payload[0] & 31
        if kind == 28:
            if payload[1] & 0x80:
                out += b'\0\0\0\1' + bytes([payload[0] & 0xe0 | payload[1] & 31])
            out += payload[2:]
        elif kind == 24:
            at = 1
            while at < len(payload):
                size = struct.unpack('!H', payload[at:at + 2])[0]
                out += b'\0\0\0\1' + payload[at + 2:at + 2 + size]
                at += 2 + size
        else:
            out += b'\0\0\0\1' + payload
    return out


def check_pictures(got, start):
    """Checks that the pictures are the film's from this second on, without a gap."""
    first = round(start) * FPS  # containers differ in the film's start time
    assert got and got == film_pictures()[first:first + len(got)], (start, len(got))


def seek_with_the_go_reader(proxy, transport, number, seed, path='/films/film.mp4'):
    draw = random.Random(seed)
    positions = [f'{draw.uniform(0, SECONDS - 1):.3f}' for _ in range(number)]
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [interop(), 'seek', '--transport', transport, '--positions', ','.join(positions), '--aus',
             '8', '--out', out, proxy.url(path)],
            capture_output=True, text=True, timeout=50 * SLOWER, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == number
        for i, answer in enumerate(answers):
            assert abs(answer['start'] - int(answer['position'])) < 0.05, answer
            got = pictures(['-f', 'h264', '-i', os.path.join(out, f'{i}.h264')])
            assert len(got) >= 7, (answer, len(got))
            check_pictures(got, answer['start'])
