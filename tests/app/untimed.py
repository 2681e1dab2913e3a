# SPDX-License-Identifier: LGPL-2.1-or-later
"""MPEG-TS with PES packets that have no timestamp: the pictures stay whole, in titles and over UDP."""

import os
import socket
import struct
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from control import Controlled
from films import ffmpeg
from proc import free_port
from tap import SLOWER, run, test
from tspackets import PACKET, packet, packets_of

PID, SECONDS, FPS = 0x100, 4, 25
ENOUGH = 30 # pictures of a live stream
H264 = '-c:v', 'libx264', '-preset', 'ultrafast', '-x264-params', 'slices=1', '-g', '25', '-bf'
SOURCES = {'h264': (*H264, '0'), 'reordered': (*H264, '2'),
           'mpeg2': ('-c:v', 'mpeg2video', '-b:v', '3M', '-g', '12', '-bf', '2')}


def units(stream):
    """Returns, for each PES packet of the video in order, the index of its first transport packet, and its bytes."""
    found = []
    for n, data in enumerate(packets_of(stream)):
        start, pid, flags = data[1] & 0x40, struct.unpack('>H', data[1:3])[0] & 0x1fff, data[3]
        if pid == PID and flags & 0x10:
            if start:
                found.append((n, bytearray()))
            found[-1][1].extend(data[5 + data[4] if flags & 0x20 else 4:])
    return found


def bounded(head, body):
    size = len(head) - 6 + len(body)
    return head[:4] + struct.pack('>H', size if size < 65536 else 0) + head[6:] + body


def in_pieces(unit, _number, piece=4000):
    """A picture in several PES packets, of which the first has its time."""
    head = unit[:9 + unit[8]]
    body, bare = unit[len(head):], head[:6] + bytes((head[6], 0, 0))
    return [bounded(bare if at else head, body[at:at + piece]) for at in range(0, len(body), piece)]


def every_second(unit, number):
    """A picture in a PES packet; each second one has no time."""
    head = unit[:9 + unit[8]]
    return [bounded(head[:6] + bytes((head[6], 0, 0)) if number % 2 else head, unit[len(head):])]


KINDS = {'pieces': in_pieces, 'second': every_second}


def rewrite(stream, kind):
    """Returns the stream with other PES packets of the video."""
    made, counter, all_units = [], 0, dict(units(stream))
    numbers = {first: number for number, first in enumerate(all_units)}
    for n, data in enumerate(packets_of(stream)):
        if struct.unpack('>H', data[1:3])[0] & 0x1fff != PID:
            made.append(data)
            continue
        if data[3] & 0x20 and data[4] and data[5] & 0x10: # a clock, which gets a packet of its own
            made.append(struct.pack('>BHBB', 0x47, PID, 0x20 | counter - 1 & 15, 183) + data[5:5 + data[4]].ljust(183, b'\xff'))
        for pes in kind(bytes(all_units[n]), numbers[n]) if n in all_units else ():
            for at in range(0, len(pes), PACKET - 4):
                made.append(packet(PID, pes[at:at + PACKET - 4], start=at == 0, counter=counter))
                counter += 1
    return b''.join(made)


@lru_cache
def folder():
    made = tempfile.TemporaryDirectory()
    for name, words in SOURCES.items():
        path = os.path.join(made.name, f'{name}.ts')
        ffmpeg('-f', 'lavfi', '-i', f'testsrc2=s=640x360:r={FPS}', '-t', str(SECONDS), '-pix_fmt', 'yuv420p', *words,
               '-mpegts_start_pid', hex(PID), path)
        with open(path, 'rb') as file:
            stream = file.read()
        for kind, function in KINDS.items():
            with open(os.path.join(made.name, f'{name}-{kind}.ts'), 'wb') as file:
                file.write(rewrite(stream, function))
    return made


def hashes(*words):
    done = subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', *words, '-vsync', 'passthrough', '-f', 'framemd5', '-'],
                          capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    return [line.split(',')[-1].strip() for line in done.stdout.splitlines() if line[:1].isdigit()]


@lru_cache
def source(name):
    return hashes('-i', f'{folder().name}/{name}.ts')


class Sender:
    """Sends a file over UDP, again and again, at its own rate."""

    def __init__(self, path, port):
        with open(path, 'rb') as file:
            self.data = file.read()
        self.port, self.over = port, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        parts = [self.data[at:at + 7 * PACKET] for at in range(0, len(self.data), 7 * PACKET)]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            while True:
                for part in parts:
                    if self.over.wait(SECONDS / len(parts)):
                        return
                    out.sendto(part, ('127.0.0.1', self.port))

    def stop(self):
        self.over.set()
        self.thread.join()


NAMES = [(name, kind) for name in SOURCES for kind in KINDS]


@test
def pictures_of_titles_stay_whole():
    """titles with PES packets without a timestamp play with all their pictures"""
    for name, kind in NAMES: # what FFmpeg makes of them is what is right
        assert source(f'{name}-{kind}') == source(name), (name, kind)
    with Controlled({'/films': {'upstream': f'file://{folder().name}/'}}) as proxy, ThreadPoolExecutor(6) as pool:
        got = pool.map(lambda each: hashes('-rtsp_transport', 'tcp', '-i', proxy.url('/films/{}-{}.ts'.format(*each))),
                       NAMES)
        for (name, kind), pictures in zip(NAMES, got):
            expected = source(name)
            missing = len(expected) - len(pictures)
            assert 0 <= missing < 4 and set(pictures) <= set(expected), (name, kind, len(pictures))


@test
def live_pictures_stay_whole():
    """live streams with such packets arrive with whole pictures"""
    ports = {each: free_port() for each in NAMES}
    mounts = {'/{}-{}'.format(*each): {'upstream': f'udp://127.0.0.1:{port}', 'start-timeout': '30s',
                                        'connect-timeout': '20s'}
              for each, port in ports.items()}
    senders = [Sender(f'{folder().name}/{name}-{kind}.ts', port) for (name, kind), port in ports.items()]
    try:
        with Controlled(mounts) as proxy, ThreadPoolExecutor(6) as pool:
            got = pool.map(lambda each: hashes('-rtsp_transport', 'tcp', '-i', proxy.url('/{}-{}'.format(*each)), '-frames:v',
                                             str(ENOUGH)),
                           NAMES)
            for (name, kind), pictures in zip(NAMES, got):
                wrong = [each for each in pictures if each not in source(name)]
                assert len(pictures) == ENOUGH and not wrong, (name, kind, len(pictures), len(wrong))
    finally:
        for sender in senders:
            sender.stop()


if __name__ == '__main__':
    run()
