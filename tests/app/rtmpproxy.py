# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy that takes publishers over RTMP, and the frames of files for publishers of bytes."""

import json
import subprocess

from control import Controlled
from librtmp import Publisher
from sent import Sender

LIVE = {'upstream': 'publish', 'start-timeout': '20s', 'read-timeout': '20s', 'connect-timeout': '20s'}


class Rtmp(Controlled):
    """A proxy with an RTMP listener: `key` is 'tls-listen' for one over TLS."""

    def __init__(self, mounts, key='listen', **top):
        super().__init__(mounts, rtmp={key: '127.0.0.1:0'}, **top)
        try:
            listener = self.wait_for_line(r' takes publishers at ((rtmps?)://127\.0\.0\.1:(\d+))$')
            assert listener[2] == {'listen': 'rtmp', 'tls-listen': 'rtmps'}[key]
            self.base, self.rtmp_port = listener[1], int(listener[3])
        except BaseException:
            self.kill()
            raise

    def rtmp(self, path):
        return self.base + path

    def send(self, path, *options):
        """Has FFmpeg publish the film. Returns its process."""
        return Sender('-c', 'copy', *options, '-f', 'flv', self.rtmp(path))

    def publisher(self):
        return Publisher(self.rtmp_port)

    def wait_for_mount(self, tracks_=2, path='/cam', start=0):
        self.wait_for_line(rf' mount {path} up: publish, {tracks_} tracks?$', 30, start=start)


def read_parts(path, box):
    """Returns what an MP4 of video and AAC consists of: the record of its video, which is in a box of this name, and of
    its audio, and (time in ms, kind, key, composition offset in ms, frame) in order."""
    shown = json.loads(subprocess.run(
        ['ffprobe', '-v', 'error', '-show_packets', '-show_streams', '-of', 'json', path], check=True,
        capture_output=True).stdout)
    with open(path, 'rb') as file:
        data = file.read()
    at = data.index(box)
    record = data[at + 4:at - 4 + int.from_bytes(data[at - 4:at], 'big')]
    at = data.index(b'\x05', data.index(b'esds') + 25) # the descriptor of the record
    size = next(i for i in range(at + 1, at + 5) if data[i] < 0x80)
    sound = data[size + 1:size + 1 + data[size]]
    parts = []
    for packet in shown['packets']:
        start, length = int(packet['pos']), int(packet['size'])
        dts, pts = float(packet['dts_time']), float(packet['pts_time'])
        parts.append((round(dts * 1000), packet['codec_type'], 'K' in packet['flags'], round((pts - dts) * 1000),
                      data[start:start + length]))
    return record, sound, sorted(parts, key=lambda part: part[0])
