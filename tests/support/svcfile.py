# SPDX-License-Identifier: LGPL-2.1-or-later
"""The H.264 SVC stream of tests/data/svc: its pictures, the frames that a decoder makes of them,
and a sender.

    svcfile.py PORT    sends the stream to PORT of this machine until it is killed
"""

import functools
import hashlib
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import threading
import time

from sanitized import environment
from tap import Skip

SVC = pathlib.Path(__file__).resolve().parents[1] / 'data' / 'svc' / 'svc_3s3t.264'
SIZES = [(320, 180), (640, 360), (1280, 720)]
PICTURES, GROUP = 120, 60  # pictures in the file, and from one IDR to the next
BYTES = 'video/x-h264,stream-format=byte-stream,alignment=au'
PATIENCE = 120
MTU = 1200
SSRC, NTP_EPOCH = 0x51c, 2208988800


# ---- the file ----


def units(data):
    starts = [m.end() for m in re.finditer(b'\0\0\1', data)] + [len(data) + 3]
    for start, end in zip(starts, starts[1:]):
        yield data[start:end - 3].rstrip(b'\0')


def kind(unit):
    return unit[0] & 31


def spatial_of(unit):
    return unit[2] >> 4 & 7 if kind(unit) == 20 else 0


def temporal_of(unit):
    """Returns the temporal layer of a prefix or of a slice of an upper layer."""
    return unit[3] >> 5


def is_parameter(unit):
    return kind(unit) in (7, 8, 15)


@functools.lru_cache
def pictures():
    """Returns the units of each picture without parameter sets, and the parameter sets."""
    found, parameters = [], []
    for unit in units(SVC.read_bytes()):
        if is_parameter(unit):
            if unit not in parameters:
                parameters.append(unit)
            continue
        if kind(unit) == 14:
            found.append([])
        found[-1].append(unit)
    assert len(found) == PICTURES
    return found, parameters


# ---- decoding ----


def stock():
    """Returns an environment without our plugins, which may be sanitized, for the reference
    decoder."""
    mine = {name: value for name, value in os.environ.items()
            if name not in ('GST_PLUGIN_PATH', 'GST_REGISTRY_FORK')}
    if 'GST_REGISTRY' in mine:
        mine['GST_REGISTRY'] += '-stock'
    return mine


def need(element, variables):
    if subprocess.run(['gst-inspect-1.0', element], env=variables,
                      capture_output=True).returncode != 0:
        raise Skip(f'element {element} is missing')


def bytes_of(spatial):
    return SIZES[spatial][0] * SIZES[spatial][1] * 3 // 2


def decode(line, layers, variables):
    """Returns the hashes of the frames, given the spatial layer of each."""
    with subprocess.Popen(['gst-launch-1.0', '-q', *line.split(), '!', 'fdsink', 'fd=1'], env=variables,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        frames = [hashlib.md5(child.stdout.read(bytes_of(layer))).hexdigest() for layer in layers]
        rest = child.stdout.read()
        errors = child.stderr.read().decode()
        assert child.wait(PATIENCE) == 0 and not rest, f'{len(rest)} extra bytes; {errors}'
    return frames


def reference(directory, spatial):
    """Returns the frames of a spatial layer and those below it, according to annex G of H.264."""
    cut = directory / 'cut.264'
    cut.write_bytes(b''.join(b'\0\0\0\1' + unit for unit in units(SVC.read_bytes())
                             if spatial_of(unit) <= spatial))
    need('openh264dec', stock())
    # openh264dec accepts only profiles that it lists, so the caps name one of these.
    return decode(f'filesrc location={cut} ! h264parse ! {BYTES} ! '
                  'capssetter caps=video/x-h264,profile=constrained-baseline ! openh264dec',
                  [spatial] * PICTURES, stock())


def check_shown(directory, reader, shown, references):
    """Checks that svcdec shows the pictures in DIRECTORY/READER-N.264, each a (number in the file,
    spatial layer), as the references do. Each picture is in its own file, because h264parse
    would restart the decoder at every change of size."""
    # The stock decoder loses frames when the size of the picture changes.
    need('svcdec', environment())
    frames = decode(f'multifilesrc location={directory}/{reader}-%d.264 '
                    f'stop-index={len(shown) - 1} caps={BYTES},framerate=30/1 ! svcdec',
                    [spatial for _, spatial in shown], environment())
    wanted = [references[spatial][picture % PICTURES] for picture, spatial in shown]
    wrong = [at for at, (a, b) in enumerate(zip(frames, wanted)) if a != b]
    assert not wrong, f'reader {reader}: {len(wrong)} of {len(frames)} frames differ, ' \
        f'first {shown[wrong[0]]}'


# ---- as RTP ----


def payloads(unit):
    """Yields the RTP payloads of a unit (RFC 6184): one packet, or FU-As."""
    if len(unit) <= MTU:
        yield unit
        return
    pieces = [unit[at:at + MTU] for at in range(1, len(unit), MTU)]
    for n, piece in enumerate(pieces):
        flags = 0x80 * (n == 0) | 0x40 * (n == len(pieces) - 1)
        yield bytes([unit[0] & 0xe0 | 28, flags | kind(unit)]) + piece


@functools.lru_cache
def payloads_of(number):
    """Returns the payloads of a picture, with the parameter sets if it is a key picture."""
    found, parameters = pictures()
    whole = (parameters if number % GROUP == 0 else []) + found[number]
    return [payload for unit in whole for payload in payloads(unit)]


class Sender:
    """Sends the file in a loop until it is stopped. `send` takes 0 and a packet of RTP, or 1 and one of
    RTCP."""

    def __init__(self, send, fps=30):
        self.send, self.fps = send, fps
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    def run(self):
        seq, start, n = 65000, time.monotonic(), 0
        while not self._ends.wait(max(0, start + n / self.fps - time.monotonic())):
            all_of_it = payloads_of(n % PICTURES)
            timestamp = n * 90000 // self.fps & 0xffffffff
            if n % self.fps == 0:
                ntp = int((time.time() + NTP_EPOCH) * 2**32)
                self.send(1, struct.pack('>BBHIQIII', 0x80, 200, 6, SSRC, ntp, timestamp, 0, 0))
            for left, payload in zip(reversed(range(len(all_of_it))), all_of_it):
                self.send(0, struct.pack('>BBHII', 0x80, 96 | 0x80 * (left == 0), seq & 0xffff, timestamp,
                                         SSRC) + payload)
                seq += 1
            n += 1


def udp_to(port):
    """Returns a function that sends to this port of this machine, and RTCP to the next one."""
    out = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(2)]
    for channel, each in enumerate(out):
        each.connect(('127.0.0.1', port + channel))

    def send(channel, packet):
        try:
            out[channel].send(packet)
        except ConnectionRefusedError:  # nothing listens on the port yet
            pass

    return send


# ---- from RTP ----


class Assembler:
    """Assembles pictures from one reader's packets."""

    def __init__(self):
        self.pictures = []  # each a list of units
        self.lost = 0
        self._units, self._next, self._key = [], None, True

    def add(self, packet):
        _, second, seq = struct.unpack_from('>BBH', packet)
        payload = packet[12:]
        if self._next is not None and seq != self._next:
            self.lost += (seq - self._next) % 65536
        self._next = (seq + 1) % 65536
        if payload[0] & 31 == 28:
            if payload[1] & 0x80:
                self._units.append(bytes([payload[0] & 0xe0 | payload[1] & 31]))
            if self._units:
                self._units[-1] += payload[2:]
        elif payload[0] & 31 == 24:
            at = 1
            while at < len(payload):
                size, = struct.unpack_from('>H', payload, at)
                self._units.append(payload[at + 2:at + 2 + size])
                at += 2 + size
        else:
            self._units.append(payload)
        if second >> 7:
            self.pictures.append(self._units)
            self._units = []


@functools.lru_cache
def numbers():
    """Maps each unit of the base layer to the number of its picture."""
    return {unit: n for n, units_of in enumerate(pictures()[0]) for unit in units_of
            if kind(unit) in (1, 5)}


def identify(units_of):
    """Returns the number and the spatial layer of a picture. Fails unless the picture is complete
    up to that layer."""
    number = next((numbers()[unit] for unit in units_of if unit in numbers()), None)
    assert number is not None, [(kind(unit), len(unit)) for unit in units_of]
    spatial = max(map(spatial_of, units_of))
    got = [unit for unit in units_of if not is_parameter(unit)]
    wanted = [unit for unit in pictures()[0][number] if spatial_of(unit) <= spatial]
    assert got == wanted, (number, spatial, [(kind(unit), len(unit)) for unit in got])
    return number, spatial


def temporal_of_picture(number):
    return temporal_of(pictures()[0][number % PICTURES][0])


def main():
    Sender(udp_to(int(sys.argv[1]))).run()


if __name__ == '__main__':
    main()
