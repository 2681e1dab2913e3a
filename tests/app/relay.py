# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers get the origin's stream unchanged, over one upstream connection."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from proxy import Origin, Proxy, Read, check_whole, matches
from tap import SLOWER, Skip, run, test

LONG = 'WEIR_LONG' in os.environ
MANY = 60 if LONG else 4


def relay(readers, seconds):
    """Runs `readers`, {transport: number}, all at once."""
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy:
        reads = [
            Read(proxy.url(), transport=transport, readers=number, duration=seconds,
                 expect=origin.expect)
            for transport, number in readers.items()
        ]
        for read, number in zip(reads, readers.values()):
            check_whole(read.result(), number)
        assert origin.count('play') == 1, origin.output()
        for transport, number in readers.items():
            began = matches(proxy, rf' reader \S+ in: /cam over {transport.upper()}$')
            assert len(began) == number, (transport, len(began))


@test
def one_tcp_reader_gets_the_whole_stream():
    relay({'tcp': 1}, 4)


@test
def one_udp_reader_gets_the_whole_stream():
    relay({'udp': 1}, 4)


@test
def fifty_tcp_readers_get_the_whole_stream():
    relay({'tcp': 50}, 4)


@test
def fifty_udp_readers_get_the_whole_stream():
    relay({'udp': 50}, 4)


@test(timeout=120)
def twenty_tcp_and_twenty_udp_readers_get_the_whole_stream():
    relay({'udp': 20, 'tcp': 20}, MANY)


def frame_hashes(url, transport, seconds):
    """Returns {stream: hashes of its frames, in order}, as FFmpeg receives them."""
    ffmpeg = shutil.which('ffmpeg')
    if not ffmpeg:
        raise Skip('ffmpeg is not on the PATH')
    done = subprocess.run(
        [ffmpeg, '-nostdin', '-loglevel', 'error', '-rtsp_transport', transport,
         '-buffer_size', '4194304', '-i', url, '-copyinkf',
         '-t', str(seconds), '-map', '0', '-c', 'copy', '-f', 'framehash', '-hash', 'sha256',
         '-'],
        capture_output=True, text=True, timeout=SLOWER * (seconds + 20), check=False,
    )
    assert done.returncode == 0, done.stderr
    streams = {}
    for line in done.stdout.splitlines():
        if not line.startswith('#'):
            fields = [field.strip() for field in line.split(',')]
            streams.setdefault(fields[0], []).append(fields[5])
    return streams


@test
def ffmpeg_gets_the_origins_frames_in_order():
    with Origin() as origin, Proxy({'/cam': origin.url}) as proxy:
        with ThreadPoolExecutor(3) as pool:
            # Twice the clip's length, so that its end and restart are included.
            direct = pool.submit(frame_hashes, origin.url, 'tcp', 12)
            read = [(transport, pool.submit(frame_hashes, proxy.url(), transport, 3))
                    for transport in ('udp', 'tcp')]
        direct = direct.result()
        for transport, through in read:
            through = through.result()
            assert set(through) == set(direct) == {'0', '1'}, (transport, set(through))
            for stream, frames in through.items():
                # The first frame may be the rest of one that was being sent at PLAY.
                pairs = set(zip(frames[1:], frames[2:]))
                known = set(zip(direct[stream][1:], direct[stream][2:]))
                assert len(frames) > 40, (transport, stream, len(frames))
                assert pairs <= known, (transport, stream, len(pairs - known), len(pairs))


@test
def all_udp_goes_through_fanoutsink():
    with Origin() as origin:
        # An element's name comes from its type, not from the factory asked for.
        with Proxy({'/cam': origin.url}, env={'GST_DEBUG': 'GST_STATES:4',
                                              'GST_DEBUG_NO_COLOR': '1'}) as proxy:
            Read(proxy.url(), transport='udp', readers=2, duration=1).result()
            Read(proxy.url(), transport='tcp', readers=2, duration=1).result()
            sinks = {match[1] for match in matches(proxy, r'<([^>:]*udpsink[^>:]*|fanoutsink[^>:]*)>')}
    ours = {name for name in sinks if name.startswith('fanoutsink')}
    # RTP and RTCP of two tracks; rtspsrc uses udpsinks only to reach its upstream.
    assert len(ours) >= 4, sinks
    assert not {name for name in sinks if name.startswith(('multiudpsink', 'dynudpsink'))}, sinks


if __name__ == '__main__':
    run()
