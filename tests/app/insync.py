# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sound and picture of a camera whose packets come at other times than they were taken, out by HLS,
MPEG-TS and RTMP: as its sender reports say."""

import os
import re
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from datetime import datetime

from livets import Served, clip
from nginxrtmp import RtmpServer
from proc import free_port
from proxy import wait_until
from sanitized import stock_environment
from scripted import AUDIO, SSRC, VIDEO, Server, sender_report
from tap import SLOWER, run, test
from transportstream import check_packets, frames, offset_error

RATES = (90000, 48000)
BASES = (0xffff0000, 0x7654321)  # of the tracks' timestamps; that of video wraps soon
LATER = 0.3  # s by which sound comes later than it was taken
NTP_1970 = 2208988800
SDP = {
    VIDEO: 'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=control:track0\r\n',
    AUDIO: 'm=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/48000/1\r\na=fmtp:97 streamtype=5;profile-level-id=2;'
           'mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1188\r\na=control:track1\r\n',
}
FRAMES_A_PACKET = 3  # of sound, as ffmpeg and cameras send it
PAYLOADERS = ('h264parse ! rtph264pay pt=96 config-interval=-1', 'aacparse ! rtpmp4gpay pt=97')


def bundled(packets):
    """Returns packets of several frames each, of those of one frame (RFC 3640, 3.2.1)."""
    made = []
    for at in range(0, len(packets) - FRAMES_A_PACKET, FRAMES_A_PACKET):
        group = [packet for _, packet in packets[at:at + FRAMES_A_PACKET]]
        head = group[0][:2] + struct.pack('>H', (65500 + len(made)) & 0xffff) + group[0][4:12]
        made.append((packets[at][0], head + struct.pack('>H', 16 * len(group))
                     + b''.join(each[14:16] for each in group) + b''.join(each[16:] for each in group)))
    return made


def read_packets(path, track):
    """Returns [(time in s, packet)] of a track of a film. A reordered picture has the time at which it
    is sent."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(
            f'gst-launch-1.0 -q filesrc location={path} ! qtdemux name=d d.{("video", "audio")[track]}_0 ! '
            f'{PAYLOADERS[track]} mtu=1400 seqnum-offset=65500 timestamp-offset={BASES[track]} ssrc={SSRC + track} ! '
            f'rtpstreampay ! filesink location={file.name}'.split(), check=True, timeout=30 * SLOWER, env=stock_environment())
        data = file.read()
    found, when = [], 0
    while data:
        size = int.from_bytes(data[:2], 'big')
        packet, data = data[2:2 + size], data[2 + size:]
        ticks = (struct.unpack_from('>I', packet, 4)[0] - BASES[track]) & 0xffffffff
        ticks -= (ticks >> 31) << 32
        when = max(when, ticks / RATES[track])
        found.append((when, packet))
    return bundled(found) if track == AUDIO else found


class Camera(Server):
    """Sends the clip, from `since` s of its pictures on. The reports of each track
    come with its first packet from `reported` s on, and then each second. `jumps` are (time in s,
    by how many s timestamps are later from then on than at the start). There is no sound in the
    time (from, to) of `silent`."""

    def __init__(self, reported, late=LATER, skew=0, since=0, jumps=(), silent=(0, 0)):
        self.reported, self.late_s, self.skew, self.since, self.jumps = reported, late, skew, since, jumps
        packets = [(when, track, packet) for track in (VIDEO, AUDIO) for when, packet in read_packets(clip('long.mp4'), track)]
        packets = [each for each in packets if each[0] + late * each[1] >= since
                   and (each[1] == VIDEO or not silent[0] <= each[0] < silent[1])]
        self.packets = sorted(packets, key=lambda each: each[0] + late * each[1])
        super().__init__(play=self.send_all, tracks=(VIDEO, AUDIO), sdp=SDP)

    def jumped(self, track, when):
        return ([0] + [by for start, by in self.jumps if when >= start])[-1] * RATES[track]

    def report(self, session, track, when):
        seconds = self.began + when + NTP_1970
        ticks = round(when * RATES[track]) + BASES[track] + self.jumped(track, when)
        session.send(track, sender_report(int(seconds * 2 ** 32), ticks & 0xffffffff, track), rtcp=True)

    def send_all(self, session):
        self.began, start = time.time() - self.since + self.skew, time.monotonic() - self.since
        due = [*self.reported]
        try:
            for when, track, packet in self.packets:
                session.left.wait(max(start + when + self.late_s * track - time.monotonic(), 0))
                if session.left.is_set():
                    return
                if when >= due[track]:
                    self.report(session, track, when)
                    due[track] = when + 1
                ticks = struct.unpack_from('>I', packet, 4)[0] + self.jumped(track, when)
                session.send(track, packet[:4] + struct.pack('>I', ticks & 0xffffffff) + packet[8:])
        except OSError:
            pass


def camera_proxy(camera, **mount):
    return Served(mount={'upstream': camera.url, 'transport': 'tcp', 'start-timeout': '20s', **mount})


def check_media(path, least=40):
    sent, source = frames(path), frames(clip('long.mp4'))
    assert len(sent['v']) >= least and len(sent['a']) >= least, {k: len(v) for k, v in sent.items()}
    error = offset_error(sent, source)
    print(f'# offset {1000 * error:.2f} ms')
    assert error < 0.005, error


def fetch_stream(proxy, path, size):
    with socket.create_connection(('127.0.0.1', proxy.web_port), 20) as reader, open(path, 'wb') as file:
        reader.sendall(b'GET /ts/cam HTTP/1.1\r\nHost: localhost\r\n\r\n')
        data = b''
        while len(data) < size:
            more = reader.recv(65536)
            assert more, len(data)
            data += more
        head, _, body = data.partition(b'\r\n\r\n')
        assert head.startswith(b'HTTP/1.1 200'), head
        body = body[:len(body) // 188 * 188]
        check_packets(body)
        file.write(body)


@test(timeout=60)
def transport_streams_are_in_sync():
    with Camera((0.5, 0.5)) as camera, camera_proxy(camera) as proxy, tempfile.NamedTemporaryFile(suffix='.ts') as file:
        fetch_stream(proxy, file.name, 400000)
        check_media(file.name)


def sound_tags(path):
    """Returns (time in ms, data) of each tag of sound."""
    found = []
    with open(path, 'rb') as file:
        data = file.read()[13:]
    while len(data) >= 15:
        size = int.from_bytes(data[1:4], 'big')
        if data[0] == 8 and len(data) >= size + 15:
            found.append((int.from_bytes(data[7:8] + data[4:7], 'big'), data[11:11 + size]))
        data = data[size + 15:]
    return found


@test(timeout=60)
def rtmp_is_in_sync():
    """by RTMP, also when the sound pauses: no frame of sound is empty, for which MediaMTX would close"""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, Camera((0.5, 0.5), silent=(3, 4)) as camera:
        path = f'{folder}/x.flv'
        os.chmod(folder, 0o777)
        with RtmpServer(port, folder, f'record all; record_path {folder};'), \
             camera_proxy(camera, push=[f'rtmp://127.0.0.1:{port}/live/x']):
            wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 450000, 40, 'a recording')
        check_media(path)
        tags = sound_tags(path)
        times = [when for when, _ in tags]
        assert max(after - before for before, after in zip(times, times[1:])) > 900, times
        assert min(len(data) for _, data in tags) > 2, tags


def get(uri):
    with urllib.request.urlopen(uri, timeout=20) as answer:
        return answer.read()


def check_newest(uri, text):
    """Checks that the newest segment has frames of the clip."""
    with tempfile.NamedTemporaryFile(suffix='.mp4') as file:
        for each in re.findall('URI="(init.*?)"', text)[-1], re.findall('^seg.*', text, re.M)[-1]:
            file.write(get(f'{uri.rsplit("/", 1)[0]}/{each}'))
        file.flush()
        sent, source = frames(file.name), frames(clip('long.mp4'))
    assert len(sent['v']) > 10 and {md5 for _, md5 in sent['v']} <= {md5 for _, md5 in source['v']}, sent['v']


def check_date(uri, camera):
    """Checks the date of the newest segment: when its first picture was taken, by the camera's clock."""
    folder = get(uri).decode().splitlines()[-1]
    uri = f'{uri.rsplit("/", 1)[0]}/{folder}'
    text = get(uri).decode()
    said, name = re.findall(r'#EXT-X-PROGRAM-DATE-TIME:(.*)\n(?:#EXTINF.*\n)?(seg.*)', text)[-1]
    with tempfile.NamedTemporaryFile(suffix='.mp4') as file:
        for each in re.search('URI="(init.*?)"', text)[1], name:
            file.write(get(f'{uri.rsplit("/", 1)[0]}/{each}'))
        file.flush()
        first = frames(file.name)['v'][0][1]
    taken = camera.began + next(when for when, md5 in frames(clip('long.mp4'))['v'] if md5 == first)
    error = datetime.fromisoformat(said.replace('Z', '+00:00')).timestamp() - taken
    print(f'# date {1000 * error:.1f} ms')
    assert abs(error) < 0.005, (said, error)


@test(timeout=60)
def hls_is_in_sync_and_has_dates_by_the_cameras_clock():
    with Camera((0.5, 0.5), skew=-3) as camera, camera_proxy(camera) as proxy, tempfile.TemporaryDirectory() as folder:
        uri = f'http://127.0.0.1:{proxy.web_port}/hls/cam/plain.m3u8'
        subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-i', uri, '-t', '4', '-c', 'copy',
                        f'{folder}/got.mkv'], check=True, timeout=50 * SLOWER)
        check_media(f'{folder}/got.mkv')
        check_date(uri, camera)


@test(timeout=60)
def hls_of_a_camera_that_has_been_running_is_in_sync():
    """the sound that comes with the first picture was taken before it"""
    with Camera((2.8, 2.2), since=2) as camera, camera_proxy(camera) as proxy, tempfile.TemporaryDirectory() as folder:
        uri = f'http://127.0.0.1:{proxy.web_port}/hls/cam/plain.m3u8'
        subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-i', uri, '-t', '4', '-c', 'copy',
                        f'{folder}/got.mkv'], check=True, timeout=50 * SLOWER)
        check_media(f'{folder}/got.mkv')


@test(timeout=60)
def a_clock_that_jumps_is_followed():
    """HLS goes on without a discontinuity when timestamps jump forwards by an hour, and back"""
    with Camera((0.5, 0.5), jumps=((4, 3600), (8, 0))) as camera, camera_proxy(camera) as proxy:
        uri = f'http://127.0.0.1:{proxy.web_port}/hls/cam/plain.m3u8'
        uri = f'{uri.rsplit("/", 1)[0]}/{get(uri).decode().splitlines()[-1]}'
        last = {}

        def behind_both():
            text = get(uri).decode()
            assert '#EXT-X-DISCONTINUITY\n' not in text and 'DISCONTINUITY-SEQUENCE:0\n' in text, text
            last.setdefault(re.findall('^seg.*', text, re.M)[-1], time.time())
            return max(last.values()) > camera.began + 14

        wait_until(behind_both, 30, 'segments behind both')
        check_newest(uri, get(uri).decode())

if __name__ == '__main__':
    run()
