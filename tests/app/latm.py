# SPDX-License-Identifier: LGPL-2.1-or-later
"""AAC in LATM, the sound of digital television: the same frames arrive on each way in and out."""

import contextlib
import os
import re
import socket
import struct
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from control import Controlled
from films import ffmpeg
from hlsweb import PATIENT
from proc import Proc, Rtsp, free_port
from proxy import matches, wait_until
from tap import SLOWER, run, test
from title_proxy import TitleProxy
from tspackets import crc, packet, packets_of
from webserver import WebServer

SOURCES = [('source.mp4', '6', '-ac', '1'), ('.six.mp4', '6', '-ac', '6'), ('.live.mp4', '60', '-ac', '1'),
           ('.stereo.mp4', '60', '-ar', '44100', '-ac', '2')]
LATM = '-mpegts_flags', 'latm'
PMT, ADTS_PID = 0x1000, 0x1a1


def with_adts(stream, other):
    """Returns the transport stream with the sound of another one, in ADTS."""
    sound = [data[:1] + struct.pack('>H', data[1] << 8 & 0x6000 | ADTS_PID) + data[3:] for data in packets_of(other)
             if struct.unpack('>H', data[1:3])[0] & 0x1fff == 0x101]
    made, each, taken = [], len(packets_of(stream)) / len(sound), 0
    for n, data in enumerate(packets_of(stream)):
        if struct.unpack('>H', data[1:3])[0] & 0x1fff == PMT:
            table = data[5:8 + (struct.unpack('>H', data[6:8])[0] & 0xfff) - 4]
            table = table[:1] + struct.pack('>H', struct.unpack('>H', table[1:3])[0] + 5) + table[3:]
            table += struct.pack('>BHH', 0x0f, 0xe000 | ADTS_PID, 0xf000)
            data = packet(PMT, b'\0' + table + struct.pack('>I', crc(table)), counter=data[3])
        made.append(data)
        while (taken + 1) * each < n:
            made.append(sound[taken])
            taken += 1
    return b''.join(made)


def rare(stream, pid):
    """Returns the transport stream with a configuration in which the streams of LATM do not share their times."""
    stream, places = bytearray(stream), []  # of the bytes of sound
    for at in range(0, len(stream), 188):
        head, control = struct.unpack('>xHB', stream[at:at + 4])
        if head & 0x1fff == pid:
            begin = at + 4 + (1 + stream[at + 4] if control & 0x20 else 0)
            places += range(begin + (9 + stream[begin + 8] if head & 0x4000 else 0), at + 188)
    sound = bytes(stream[place] for place in places)
    for found in re.finditer(rb'\x56[\xe0-\xff].\x20\x00[\x10-\x13]', sound, re.S):
        stream[places[found.start() + 3]] = 0
    return bytes(stream)


@lru_cache
def folder():
    made = tempfile.TemporaryDirectory()
    path = lambda name: os.path.join(made.name, name)
    for name, seconds, *words in SOURCES:
        ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=25', '-f', 'lavfi', '-i', 'anoisesrc=r=48000:a=0.1', '-t', seconds,
               '-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-pix_fmt', 'yuv420p', '-c:a', 'aac', *words, path(name))
    ffmpeg('-i', path('source.mp4'), '-c', 'copy', *LATM, path('latm.ts'))
    ffmpeg('-i', path('.six.mp4'), '-c', 'copy', *LATM, path('six.ts'))
    ffmpeg('-i', path('source.mp4'), '-c', 'copy', path('.adts.ts'))
    with open(path('latm.ts'), 'rb') as latm, open(path('.adts.ts'), 'rb') as adts, open(path('beside.ts'), 'wb') as both:
        both.write(with_adts(latm.read(), adts.read()))
    for name, pid, *words in ('.rare.ts', 0x101), ('.alone.ts', 0x100, '-vn'):
        ffmpeg('-i', path('.live.mp4'), '-c', 'copy', *words, *LATM, path(name))
        with open(path(name), 'r+b') as file:
            data = rare(file.read(), pid)
            file.seek(0)
            file.write(data)
    return made


def file_of(name):
    return os.path.join(folder().name, name)


def sound(url, *words, track=0):
    """Returns the hashes of the frames of AAC, without ADTS. FFmpeg 7 takes no frame of RTP for a keyframe."""
    done = subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', *words, '-i', url, '-map', f'0:a:{track}', '-c', 'copy', '-copyinkf', '-bsf:a',
                           'aac_adtstoasc', '-f', 'framemd5', '-'], capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    return [line.split(',')[5].strip() for line in done.stdout.splitlines() if line[:1].isdigit()] # behind it are side data


@lru_cache
def source(name='source.mp4'):
    return sound(file_of(name))


def check_sound(got, expected, least, where):
    """Checks that the frames are a stretch of the source."""
    assert len(got) >= least and set(got) <= set(expected), (where, len(got), len(set(got) & set(expected)))
    places = [expected.index(each) for each in got]
    assert places == list(range(places[0], places[0] + len(got))), (where, places)


@test
def titles_have_the_frames():
    """titles have the frames of the source, also beside a track of ADTS, in six channels, without worker processes"""
    for isolate in 'auto', 'no':
        with TitleProxy({'upstream': f'file://{folder().name}/'}, isolate=isolate) as proxy, ThreadPoolExecutor(4) as pool:
            wanted = [('latm.ts', 0, 'source.mp4'), ('six.ts', 0, '.six.mp4'), ('beside.ts', 0, 'source.mp4'), ('beside.ts', 1, 'source.mp4')]
            got = pool.map(lambda each: sound(proxy.url(f'/films/{each[0]}'), '-rtsp_transport', 'tcp', track=each[1]), wanted)
            for each, frames in zip(wanted, got):
                check_sound(frames, source(each[2]), 0.9 * len(source(each[2])), each)
            assert not [line for line in proxy.lines if 'left out' in line]


def sender(name, port):
    """Sends a file in LATM over UDP."""
    return Proc('ffmpeg', '-nostdin', '-v', 'error', '-re', '-i', file_of(name), '-c', 'copy', *LATM, '-f', 'mpegts',
                f'udp://127.0.0.1:{port}?pkt_size=1316')


def answer(path, _):
    with open(file_of(os.path.basename(path)), 'rb') as file:
        return 200, file.read()


@test(timeout=120)
def live_streams_have_the_frames():
    """streams over UDP and HTTP, and clips, have them over RTSP, HLS, HTTP and in recordings"""
    port = free_port()
    with tempfile.TemporaryDirectory() as where, WebServer(answer) as server, sender('.live.mp4', port):
        live = {'upstream': f'udp://127.0.0.1:{port}', **PATIENT, 'on-demand': 'no',
                'record': {'folder': where, 'segment': '1s', 'part': '200ms'}}
        mounts = {'/live': live, '/clip': {'upstream': f'file://{file_of("latm.ts")}', **PATIENT},
                  '/web': {'upstream': f'{server.base}/latm.ts', **PATIENT}}
        with Controlled(mounts, http={'listen': '127.0.0.1:0'}, hls={}) as proxy, ThreadPoolExecutor(5) as pool:
            web = 'http://127.0.0.1:' + proxy.wait_for_line(r' titles http://[\d.]+:(\d+)')[1]
            urls = [proxy.url('/live'), proxy.url('/clip'), proxy.url('/web'), f'{web}/hls/live/plain.m3u8', f'{web}/ts/live']
            for url, got in zip(urls, pool.map(lambda url: sound(url, '-t', '3', *(['-rtsp_transport', 'tcp'] if 'rtsp:' in url else [])), urls)):
                check_sound(got, source('.live.mp4' if 'live' in url else 'source.mp4'), 100, url)
            wait_until(lambda: proxy.get('/v1/mounts/live').get('recording', {}).get('written-segments', 0) >= 2, 30, 'two segments')
            name = sorted(os.listdir(f'{where}/live'))[0]
            check_sound(sound(f'{where}/live/{name}'), source('.live.mp4'), 20, name)


@test
def the_configuration_may_change():
    """a stream whose configuration changes is described anew, and has the frames after that"""
    port = free_port()
    with Controlled({'/cam': {'upstream': f'udp://127.0.0.1:{port}', 'on-demand': 'no', **PATIENT}}) as proxy:
        for name, words in ('.live.mp4', '48000'), ('.stereo.mp4', '44100/2'), ('.live.mp4', '48000'):
            with sender(name, port):
                def is_described():
                    # Other tracks end the connections to the mount, also one that has just asked.
                    with contextlib.suppress(ConnectionError), Rtsp(proxy.port) as rtsp:
                        sdp = rtsp.request('DESCRIBE', proxy.url('/cam'))[2].decode().lower()
                        return f'mpeg4-generic/{words}' in sdp
                    return False
                wait_until(is_described, 30, f'sound of {words}')
                check_sound(sound(proxy.url('/cam'), '-t', '2', '-rtsp_transport', 'tcp'), source(name), 60, name)


@test
def a_publisher_over_srt_has_the_frames():
    """a transport stream with LATM that is published over SRT has the frames of the source"""
    with Controlled({'/cam': {'upstream': 'publish', **PATIENT}}, srt={'listen': '127.0.0.1:0', 'latency': '1s'}) as proxy:
        port = proxy.wait_for_line(r' takes publishers at srt://127\.0\.0\.1:(\d+)$')[1]
        with Proc('ffmpeg', '-nostdin', '-v', 'error', '-re', '-i', file_of('.live.mp4'), '-c', 'copy', *LATM, '-f', 'mpegts',
                  f'srt://127.0.0.1:{port}?streamid=publish:cam&pkt_size=1316'):
            proxy.wait_for_line(r' mount /cam up: publish, 2 tracks$', 30)
            check_sound(sound(proxy.url('/cam'), '-t', '3', '-rtsp_transport', 'tcp'), source('.live.mp4'), 100, 'SRT')


def kinds(proxy, path='/cam'):
    """Returns the status of a DESCRIBE, and the kinds of the tracks."""
    with Rtsp(proxy.port, timeout=60) as rtsp:
        status, _, body = rtsp.request('DESCRIBE', proxy.url(path))
    return status, [line[2:7] for line in body.decode().splitlines() if line.startswith('m=')]


@test
def a_form_that_rtp_does_not_carry_costs_only_the_sound():
    """a clip whose LATM RTP cannot carry plays its picture, with a line, and over UDP the line comes with the first frame"""
    port = free_port()
    for isolate in 'auto', 'no':
        with Controlled({'/cam': {'upstream': f'file://{file_of(".rare.ts")}', **PATIENT}}, isolate=isolate) as proxy:
            assert kinds(proxy) == (200, ['video'])
            proxy.wait_for_line(r'a track is left out: nothing comes on it that RTP here has a form for: audio/mpeg$')
        with Controlled({'/cam': {'upstream': f'file://{file_of(".alone.ts")}', **PATIENT}}, isolate=isolate) as proxy:
            assert kinds(proxy) == (415, [])
    with open(file_of('.rare.ts'), 'rb') as file, Controlled({'/cam': {'upstream': f'udp://127.0.0.1:{port}', 'on-demand': 'no', **PATIENT}}) as proxy, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender_:
        data = file.read()
        for at in range(0, len(data), 1316):
            sender_.sendto(data[at:at + 1316], ('127.0.0.1', port))
            time.sleep(0.001)  # the line comes while data comes, not when the run ends
            if matches(proxy, 'LATM: sound is dropped: RTP here has no form for its configuration$'):
                break
        assert at + 1316 < len(data), proxy.output()
        assert not matches(proxy, ' mount /cam down')


if __name__ == '__main__':
    run()
