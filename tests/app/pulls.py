# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstreams other than RTSP: MPEG-TS and RTP from a sender, SDP files and launch lines.

The senders are FFmpeg's. The tests compare what readers get with the clip that was sent."""

import os
import random
import socket
import struct
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from clips import ffmpeg
from control import Watch
from proc import Rtsp, free_port
from proxy import CLIP, QUICK, Proxy, Read, listens, matches, wait_for_readers, wait_until
from scripted import Server
from sent import Sender, check_frames, clip_hashes, media, read_hashes
from tap import SLOWER, run, test
from transportstream import stream_of
from tspackets import section

GROUP = '239.255.77.1'
MOST_PACKETS = 300 # of the film's two tracks in a second, about


def ts_output(port, *words, address='127.0.0.1', options=''):
    return ('-c', 'copy', *words, '-f', 'mpegts',
            f'udp://{address}:{port}?pkt_size=1316{options}')


def rtp_output(port, track='v'):
    # The parameter sets are in-band.
    words = ('-bsf:v', 'h264_mp4toannexb') if track == 'v' else ()
    return ('-map', f'0:{track}', '-c', 'copy', *words, '-f', 'rtp', f'rtp://127.0.0.1:{port}')


@contextmanager
def pulled(uri, *ports, **settings):
    """Runs the proxy with an upstream that is always on, and waits until its ports are open."""
    settings = {'upstream': uri, 'on-demand': 'no', **settings}
    with Proxy({'/cam': settings}) as proxy:
        for port in ports:
            wait_until(lambda port=port: listens(port), 10, f'port {port} is open')
        yield proxy


def wait_up(proxy, tracks):
    proxy.wait_for_line(rf' mount /cam up: .*, {tracks} tracks$', 20)


def finish(proxy, read):
    """Ends the readers when another reader, which may begin a second ago, has got three seconds of
    media. Returns their result."""
    with Watch(proxy) as reader:
        reader.take(3 * MOST_PACKETS)
    return read.finish()


def check_smooth(result, kinds):
    """Checks that the reader's stream is continuous, whatever happened to the upstream."""
    for reader in result['readers']:
        assert reader['status'] == 'ok', reader
        assert set(reader['tracks']) == set(kinds), reader
        for name, track in reader['tracks'].items():
            for key in ('lost', 'reordered', 'duplicates', 'ssrc_changes', 'ts_backward',
                        'decode_errors'):
                assert track[key] == 0, (name, key, track)
            assert track['packets'] > 50, (name, track)


@test
def mpegts_arrives_unchanged():
    port = free_port()
    with pulled(f'udp://127.0.0.1:{port}', port) as proxy, Sender(*ts_output(port)):
        wait_up(proxy, 2)
        clip_hashes() # for both threads
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda transport: check_frames(proxy, ('video', 'audio'), transport),
                          ('tcp', 'udp')))
        read = Read(proxy.url(), duration=3).result()
        check_smooth(read, ('video', 'audio'))
        for track in read['readers'][0]['tracks'].values():
            assert track['sender_reports'] > 0, track


@test
def sound_without_a_form_in_rtp_is_left_out_with_a_line():
    port = free_port()
    with pulled(f'udp://127.0.0.1:{port}', port) as proxy, \
            Sender(*ts_output(port, '-c:a', 'ac3')):
        proxy.wait_for_line(r'a track is left out: RTP here has no form for audio/x-ac3; with pipeline: '
                            r'\[pull, opus\] or \[pull, aac\], the mount carries it$', 20)
        wait_up(proxy, 1)
        check_frames(proxy, ('video',))


@contextmanager
def rewritten(port, rewrite):
    """Receives MPEG-TS, and sends to `port` what `rewrite(packets)` makes of each datagram's: one or a tuple of them. The context's value is the port
    to send to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(('127.0.0.1', 0))
        line.settimeout(0.2)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        over = threading.Event()

        def run():
            while not over.is_set():
                try:
                    data = line.recv(65536)
                except TimeoutError:
                    continue
                made = rewrite([data[at:at + 188] for at in range(0, len(data), 188)])
                for each in made if isinstance(made, tuple) else (made,):
                    line.sendto(each, ('127.0.0.1', port))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield line.getsockname()[1]
        finally:
            over.set()
            thread.join()


def in_pieces(packets):
    """Returns three datagrams, of which the second neither ends a packet nor begins one."""
    data = b''.join(packets)
    return data[:-150], data[-150:-50], data[-50:]


FORMS = {
    'pieces of packets': in_pieces,
    'packets of 192 bytes': lambda packets: b''.join(b'\0\0\0\x47' + each for each in packets),
    'packets of 204 bytes': lambda packets: b''.join(each + bytes(16) for each in packets),
    'RTP': lambda packets: struct.pack('>BBHII', 0x80, 33, 1, 2, 3) + b''.join(packets),
}


@test(timeout=90)
def mpegts_of_any_form_arrives_unchanged():
    """FFmpeg's datagrams without pkt_size, which end within packets, pieces of packets, packets of 192 and 204 bytes, and RTP"""
    with ExitStack() as stack:
        port = free_port()
        proxies = {'no pkt_size': stack.enter_context(pulled(f'udp://127.0.0.1:{port}', port))}
        outputs = [*ts_output(port)[:-1], f'udp://127.0.0.1:{port}']
        for name, rewrite in FORMS.items():
            port = free_port()
            proxies[name] = stack.enter_context(pulled(f'udp://127.0.0.1:{port}', port))
            outputs += ts_output(stack.enter_context(rewritten(port, rewrite)))
        stack.enter_context(Sender(*outputs))
        for name, proxy in proxies.items():
            wait_up(proxy, 2)
            check_frames(proxy, ('video', 'audio'))
            assert dropped(proxy) == [0, 0, 0], (name, proxy.output())


def with_streams(packets, streams):
    """Adds streams (type, PID) to FFmpeg's PMT."""
    for at, packet in enumerate(packets):
        if stream_of(packet) != 0x1000 or not packet[1] & 0x40:
            continue
        size = (packet[6] & 15) << 8 | packet[7]
        body = packet[13:4 + size] + b''.join(struct.pack('>BHH', kind, 0xe000 | pid, 0xf000) for kind, pid in streams)
        table = section(packet[5], body)
        packets[at] = packet[:4] + table + b'\xff' * (184 - len(table))
    return b''.join(packets)


@test(timeout=90)
def streams_that_send_nothing_are_left_out():
    """a type of private data, as GoPro cameras have, and video of both kinds"""
    with ExitStack() as stack:
        proxies, outputs = [], []
        for streams in [(0x80, 0x200)], [(0x02, 0x201)], [(0x1b, 0x202), (0x0f, 0x203), (0xc1, 0x204)]:
            port = free_port()
            proxies.append(stack.enter_context(pulled(f'udp://127.0.0.1:{port}', port, **{'connect-timeout': '20s'})))
            outputs += ts_output(stack.enter_context(rewritten(port, lambda packets, add=streams: with_streams(packets, add))))
        stack.enter_context(Sender(*outputs))
        for proxy in proxies:
            wait_up(proxy, 2)
            proxy.wait_for_line(r'udp://\S+: a track is left out until something comes on it: ')
            check_frames(proxy, ('video', 'audio'))


@test
def other_codecs_in_mpegts_arrive_unchanged():
    codecs = ('libx265', 'mp2'), ('libx264', 'libmp3lame'), ('libx264', 'libopus')
    media() # before the senders need it
    with ExitStack() as stack:
        proxies = []
        for video, audio in codecs:
            port = free_port()
            proxies.append(stack.enter_context(pulled(f'udp://127.0.0.1:{port}', port)))
            stack.enter_context(Sender(
                '-c:v', video, '-preset', 'ultrafast', '-g', '25', '-s', '160x120', '-r', '25',
                '-pix_fmt', 'yuv420p', '-c:a', audio, '-ac', '2', '-f', 'mpegts',
                f'udp://127.0.0.1:{port}?pkt_size=1316'))
        for proxy in proxies:
            wait_up(proxy, 2)
        with ThreadPoolExecutor(len(codecs)) as pool:
            read = list(pool.map(read_hashes, proxies))
    for codec, proxy, got in zip(codecs, proxies, read):
        assert set(got) == {'video', 'audio'}, (codec, set(got))
        for kind, frames in got.items():
            assert len(frames) > 40, (codec, kind, len(frames), proxy.output())
            # Repeated frames would mean that the decoder filled gaps.
            assert len(set(frames)) > len(frames) * 0.9, (codec, kind)


@test
def mpegts_arrives_by_multicast():
    port = free_port()
    with pulled(f'udp://{GROUP}:{port}?iface=lo', port) as proxy, \
            Sender(*ts_output(port, address=GROUP, options='&localaddr=127.0.0.1&ttl=0')):
        wait_up(proxy, 2)
        check_frames(proxy, ('video', 'audio'))


@test
def mpegts_arrives_in_rtp():
    port = free_port()
    with pulled(f'rtp://127.0.0.1:{port}?encoding-name=MP2T', port) as proxy, \
            Sender('-c', 'copy', '-f', 'rtp_mpegts', f'rtp://127.0.0.1:{port}'):
        wait_up(proxy, 2)
        check_frames(proxy, ('video', 'audio'))


@test
def an_rtp_track_arrives_unchanged():
    port = free_port()
    uri = f'rtp://127.0.0.1:{port}?encoding-name=H264&payload=96'
    with pulled(uri, port, port + 1) as proxy, Sender(*rtp_output(port)):
        wait_up(proxy, 1)
        check_frames(proxy, ('video',))


@test
def rtp_arrives_by_multicast():
    port = free_port()
    uri = f'rtp://{GROUP}:{port}?encoding-name=H264&payload=96&iface=lo'
    output = rtp_output(port)[:-1] + (f'rtp://{GROUP}:{port}?localaddr=127.0.0.1&ttl=0',)
    with pulled(uri, port) as proxy, Sender(*output):
        wait_up(proxy, 1)
        check_frames(proxy, ('video',))


def described(directory, port, track):
    """Returns FFmpeg's description of one track: the part about the session, and the rest."""
    path = os.path.join(directory, f'{track}.sdp')
    with Sender('-t', '0.1', *rtp_output(port, track), '-sdp_file', path) as sender:
        sender.wait()
    with open(path, encoding='utf-8') as file:
        session, media, rest = file.read().partition('m=')
    return session, media + rest.rstrip('\r\n') + '\r\n'


@contextmanager
def session_file(video, audio):
    """Yields an SDP file of the clip's two tracks. FFmpeg 6.1 would describe only the first."""
    with tempfile.TemporaryDirectory() as directory:
        session, first = described(directory, video, 'v')
        _, second = described(directory, audio, 'a')
        path = os.path.join(directory, 'session.sdp')
        with open(path, 'w', encoding='utf-8', newline='') as file:
            file.write(session + first + second)
        yield path


@test
def the_tracks_of_an_sdp_file_stay_in_sync():
    video, audio = free_port(), free_port()
    with session_file(video, audio) as path, \
            pulled(f'sdp://{path}', video, video + 1, audio, audio + 1) as proxy, \
            Sender(*rtp_output(video)), Sender(*rtp_output(audio, 'a')):
        # With both tracks, one FFmpeg 6.1 at times ends the first with an input/output error.
        wait_up(proxy, 2)
        check_frames(proxy, ('video', 'audio'))
        read = Read(proxy.url(), duration=3).result()
        check_smooth(read, ('video', 'audio'))
        for track in read['readers'][0]['tracks'].values():
            assert track['sender_reports'] > 0, track


STATIC = {0: 'm=video {} RTP/AVP 32\r\n', 1: 'm=audio {} RTP/AVP 14\r\n'}


def static_packet(track, number):
    """Returns MPEG-1 or -2 video, or MPEG audio, in a payload type that needs no description."""
    step, head = ((3600, bytes(4)), (2160, bytes(4)))[track]
    return struct.pack('>BBHII', 0x80, 0x80 | (32, 14)[track], number, number * step, 7 + track) \
        + head + bytes([number % 256]) * 60


def check_static(proxy):
    """Checks that both tracks are described and arrive unchanged."""
    with Rtsp(proxy.port) as rtsp:
        sdp = rtsp.request('DESCRIBE', proxy.url())[2].decode()
    assert 'a=rtpmap:32 MPV/90000' in sdp and 'a=rtpmap:14 MPA/90000' in sdp, sdp
    with Watch(proxy) as reader:
        got = {0: [], 2: []}
        while min(map(len, got.values())) < 20:
            channel, packet = reader.frame()
            got.get(channel, []).append(packet)
    for channel, packets in got.items():
        for packet in packets:
            number = packet[16]
            sent = static_packet(channel // 2, number)
            assert packet[:2] == sent[:2] and packet[12:] == sent[12:], (channel, packet)


@test
def static_payload_types_are_known_without_a_description():
    """an RTSP upstream's tracks of static payload types need no rtpmap"""
    def play(session):
        number = 0
        while not session.left.wait(0.02):
            for track in STATIC:
                session.send(track, static_packet(track, number))
            number += 1

    sdp = {track: f'{line.format(0)}a=control:track{track}\r\n' for track, line in STATIC.items()}
    with Server(play, tracks=(0, 1), sdp=sdp) as server, \
            Proxy({'/cam': {'upstream': server.url, 'transport': 'tcp'}}) as proxy:
        check_static(proxy)


@test
def static_payload_types_of_an_sdp_file_are_known():
    """an SDP file's tracks of static payload types need no rtpmap"""
    ports, over = (free_port(), free_port()), threading.Event()

    def send():
        number = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not over.wait(0.02):
                for track, port in enumerate(ports):
                    sender.sendto(static_packet(track, number), ('127.0.0.1', port))
                number += 1

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'session.sdp')
        with open(path, 'w', encoding='ascii') as file:
            file.write('v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n')
            file.writelines(line.format(port) for port, line in zip(ports, STATIC.values()))
        with pulled(f'sdp://{path}', *ports) as proxy:
            sending = threading.Thread(target=send)
            sending.start()
            try:
                check_static(proxy)
            finally:
                over.set()
                sending.join()


@test
def a_clip_is_looped_without_a_seam():
    """a looped clip's timestamps rise across its end, and its tracks stay in sync"""
    rounds, per_round = 2, {0: 132, 2: 249} # frames of the clip's video, and of its longer sound
    last, seen = None, {0: {}, 2: {}} # of each channel: timestamp -> the frame's first bytes
    with Proxy({'/cam': f'file://{CLIP}'}) as proxy, Watch(proxy) as reader:
        while len(seen[2]) < (rounds + 1) * per_round[2]:
            channel, packet = reader.frame()
            if channel % 2 == 0:
                timestamp, = struct.unpack('>I', packet[4:8])
                first = timestamp not in seen[channel]
                assert first or channel == 0 and timestamp == last, 'a timestamp repeats'
                seen[channel].setdefault(timestamp, packet[12:])
                last = timestamp if channel == 0 else last
    times = {channel: list(frames) for channel, frames in seen.items()}
    steps = {channel: [(b - a + 2 ** 31) % 2 ** 32 - 2 ** 31 for a, b in zip(all, all[1:])]
             for channel, all in times.items()}
    assert set(steps[2]) <= {1023, 1024, 1025}, steps[2]
    regular = {3599, 3600, 3601}
    # A late reader first catches up, in shorter steps.
    caught_up = next(i for i, step in enumerate(steps[0]) if step in regular)
    assert all(0 < step < 3599 for step in steps[0][:caught_up]), steps[0]
    seams = [i for i, step in enumerate(steps[0]) if i >= caught_up and step not in regular]
    assert len(seams) >= rounds, steps[0]
    # Each round takes the same time in both tracks, so they do not drift.
    for a, b in zip(seams, seams[1:]):
        assert b - a == per_round[0], seams
        assert abs(sum(steps[0][a:b]) / 90000 - per_round[2] * 1024 / 48000) < 1 / 48000, seams
    for channel, frames in seen.items():
        data = list(frames.values())[1:]
        for a, b in zip(data, data[per_round[channel]:]):
            assert a == b, 'not the same frame a round later'


@test
def sound_from_before_the_beginning_of_a_clip_leaves_no_gap():
    """the frame that encoders put before the beginning is not played, and takes no sequence number"""
    with tempfile.TemporaryDirectory() as folder:
        clip = os.path.join(folder, 'clip.mp4')
        subprocess.run([ffmpeg(), '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=64x64:rate=25', '-f',
                        'lavfi', '-i', 'sine=sample_rate=48000', '-t', '1', '-c:v', 'libx264', '-c:a', 'aac', clip], check=True)
        numbers = []
        with Proxy({'/cam': f'file://{clip}'}) as proxy, Watch(proxy) as reader:
            while len(numbers) < 150: # three rounds
                channel, packet = reader.frame()
                if channel == 2:
                    numbers.append(struct.unpack('>H', packet[2:4])[0])
        steps = {(b - a) % 2 ** 16 for a, b in zip(numbers, numbers[1:])}
        assert steps == {1}, numbers


@test
def clips_of_mpegts_are_played_again_and_again():
    with tempfile.TemporaryDirectory() as directory:
        mounts = {}
        for name, source in ('cam', media()[2]), ('short', CLIP):
            path = os.path.join(directory, f'{name}.ts')
            subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-i', source, '-c', 'copy', path], check=True)
            mounts[f'/{name}'] = {'upstream': f'file://{path}', 'on-demand': 'no'}
        with Proxy(mounts) as proxy:
            wait_up(proxy, 2)
            check_frames(proxy, ('video', 'audio'))
            wait_until(lambda: len(matches(proxy, r' mount /short up: ')) > 1, 30, 'the second round')


@test
def a_launch_line_is_served():
    # Not live: the pipeline's clock paces the media in real time.
    line = (f'launch: filesrc location={media()[1]} ! qtdemux name=d '
            'd.video_0 ! queue ! h264parse ! rtph264pay config-interval=-1 name=pay0 '
            'd.audio_0 ! queue ! aacparse ! rtpmp4gpay pt=97 name=pay1')
    with pulled(line) as proxy:
        wait_up(proxy, 2)
        check_frames(proxy, ('video', 'audio'))
        assert 'filesrc' not in proxy.output(), 'the line is in the log'


@test
def a_live_launch_line_is_served():
    line = ('launch: videotestsrc is-live=true ! video/x-raw,width=160,height=120 ! '
            'vp8enc deadline=1 keyframe-max-dist=25 ! rtpvp8pay name=pay0 '
            'audiotestsrc is-live=true ! opusenc ! rtpopuspay pt=97 name=pay1')
    with pulled(line) as proxy:
        wait_up(proxy, 2)
        got = read_hashes(proxy)
        assert set(got) == {'video', 'audio'}, set(got)
        assert len(got['video']) > 50 and len(got['audio']) > 100, got


def outlives_restart(proxy, output, kinds):
    with Sender(*output):
        wait_up(proxy, len(kinds))
        read = Read(proxy.url(), duration=50)
        wait_for_readers(proxy, 1)
    with read, Sender(*output):
        check_smooth(finish(proxy, read), kinds)


@test
def readers_outlive_a_restart_of_the_sender_of_mpegts():
    port = free_port()
    with pulled(f'udp://127.0.0.1:{port}', port) as proxy:
        outlives_restart(proxy, ts_output(port), ('video', 'audio'))


@test
def readers_outlive_a_restart_of_the_sender_of_rtp():
    port = free_port()
    uri = f'rtp://127.0.0.1:{port}?encoding-name=H264&payload=96'
    with pulled(uri, port, port + 1) as proxy:
        outlives_restart(proxy, rtp_output(port), ('video',))


@test
def readers_outlive_a_silence_longer_than_the_read_timeout():
    port = free_port()
    for uri, output, kinds in (
        (f'udp://127.0.0.1:{port}', ts_output(port), ('video', 'audio')),
        (f'rtp://127.0.0.1:{port}?encoding-name=H264&payload=96', rtp_output(port), ('video',)),
    ):
        with pulled(uri, port, **QUICK) as proxy:
            with Sender(*output):
                wait_up(proxy, len(kinds))
                read = Read(proxy.url(), duration=50)
                wait_for_readers(proxy, 1)
            with read:
                proxy.wait_for_line(r' mount /cam down: .*no media for 1\.0 s')
                start = len(proxy.lines)
                with Sender(*output):
                    proxy.wait_for_line(r' mount /cam up: ', 20, start)
                    check_smooth(finish(proxy, read), kinds)


@test
def streams_on_other_pids_are_the_same_tracks():
    port = free_port()
    with pulled(f'udp://127.0.0.1:{port}', port) as proxy:
        with Sender(*ts_output(port)):
            wait_up(proxy, 2)
            read = Read(proxy.url(), duration=50)
            wait_for_readers(proxy, 1)
        other = ('-mpegts_start_pid', '0x200', '-mpegts_pmt_start_pid', '0x1200')
        with read, Sender(*ts_output(port, *other)):
            check_smooth(finish(proxy, read), ('video', 'audio'))


def crc32_mpeg(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1) ^ (0x04c11db7 if crc & 0x80000000 else 0)
        crc &= 0xffffffff
    return crc


def with_version(ts, version):
    """Returns FFmpeg's MPEG-TS with another version number in its tables."""
    out = bytearray(ts)
    for at in range(0, len(out), 188):
        pid = struct.unpack_from('>H', out, at + 1)[0] & 0x1fff
        if pid in (0, 0x1000) and out[at + 1] & 0x40:
            table = at + 5  # no adaptation field; the table follows the pointer
            size = 3 + (struct.unpack_from('>H', out, table + 1)[0] & 0xfff)
            out[table + 5] = out[table + 5] & 0xc1 | version << 1
            struct.pack_into('>I', out, table + size - 4, crc32_mpeg(out[table:table + size - 4]))
    return bytes(out)


def some_seconds(*words, seconds=4):
    return subprocess.run(
        [ffmpeg(), '-nostdin', '-loglevel', 'error', '-i', media()[2], '-t', str(seconds), '-c',
         'copy', *words, '-f', 'mpegts', '-'], capture_output=True, check=True, timeout=30 * SLOWER).stdout


def send_paced(port, ts, seconds, ahead=0):
    """Sends the stream in `seconds` seconds, its first `ahead` seconds at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(('127.0.0.1', port))
        start = time.monotonic()
        for at in range(0, len(ts), 1316):
            time.sleep(max(0, start + seconds * at / len(ts) - ahead - time.monotonic()))
            sender.send(ts[at:at + 1316])


@test
def new_table_versions_are_followed():
    port = free_port()
    same = some_seconds() + with_version(some_seconds('-mpegts_start_pid', '0x200'), 1)
    fewer = some_seconds('-an', '-mpegts_start_pid', '0x300')
    with pulled(f'udp://127.0.0.1:{port}', port) as proxy:
        sending = threading.Thread(target=send_paced, args=(
            port, same + with_version(fewer, 2), 12))
        sending.start()
        wait_up(proxy, 2)
        with Read(proxy.url(), duration=6) as read:
            check_smooth(read.result(), ('video', 'audio'))
        with Read(proxy.url(), duration=6) as read:
            proxy.wait_for_line(r' reader \S+ out: /cam: .*tracks', 15)
        sending.join()


@test
def timestamps_never_go_back_after_an_initial_burst():
    port = free_port()
    with pulled(f'udp://127.0.0.1:{port}', port) as proxy:
        sending = threading.Thread(target=send_paced, args=(
            port, some_seconds(seconds=6), 6, 0.5))
        sending.start()
        wait_up(proxy, 2)
        with Read(proxy.url(), duration=3) as read:
            check_smooth(read.result(), ('video', 'audio'))
        sending.join()


@test
def other_tracks_close_the_readers_and_are_served():
    port = free_port()
    with pulled(f'udp://127.0.0.1:{port}', port) as proxy:
        with Sender(*ts_output(port)):
            wait_up(proxy, 2)
            read = Read(proxy.url(), duration=20)
            wait_for_readers(proxy, 1)
        with read, Sender(*ts_output(port, '-an', '-mpegts_start_pid', '0x200')):
            proxy.wait_for_line(r' reader \S+ out: /cam: .*tracks', 15)
            check_frames(proxy, ('video',))


# ---- mistakes ----


def dropped(proxy):
    """Stops the proxy. Returns the upstream's drop counters."""
    proxy.check_leaves(15)
    lines = matches(proxy, r' dropped (\d+) malformed datagrams, (\d+) from other senders, '
                           r'(\d+) for lack of buffer space')
    return [sum(int(line[i]) for line in lines) for i in (1, 2, 3)]


@test
def invalid_packets_are_counted_and_harmless():
    chance = random.Random(7)
    port = free_port()
    with pulled(f'udp://127.0.0.1:{port}', port, **{'connect-timeout': '20s'}) as proxy:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
            noise.connect(('127.0.0.1', port))
            for size in [chance.randrange(1, 2000) for _ in range(200)] + [0, 187, 189]:
                noise.send(b'\x47' * (size // 2) + chance.randbytes(size - size // 2))
            # Packets that look like TS but contain noise.
            for _ in range(50):
                noise.send(b''.join(b'\x47' + chance.randbytes(187) for _ in range(7)))
        with Sender(*ts_output(port)):
            wait_up(proxy, 2)
            check_frames(proxy, ('video', 'audio'))
        wrong, _, lost = dropped(proxy)
    assert wrong >= 200 and lost == 0, (wrong, lost)


@test
def upstream_packet_loss_is_logged_once_a_minute():
    def play(session):
        number = 0
        while not session.left.wait(0.02):
            number += 1 + (number % 10 == 0)
            session.send(0, static_packet(0, number))

    with Server(play, tracks=(0,), sdp={0: f'{STATIC[0].format(0)}a=control:track0\r\n'}) as server, \
            Proxy({'/cam': {'upstream': server.url, 'transport': 'tcp', 'on-demand': False}}) as proxy:
        line = r' mount /cam: packets from its upstream: [1-9]\d* lost, 0 malformed, 0 stale$'
        proxy.wait_for_line(line, 20)
        time.sleep(5) # the proxy has checked, but no minute has passed
        assert len(matches(proxy, line)) == 1, proxy.output()


@test
def packets_of_strangers_and_wrong_packets_are_counted():
    port = free_port()
    uri = f'rtp://127.0.0.1:{port}?encoding-name=H264&payload=96'
    header = struct.pack('>BBHII', 0x80, 96, 1, 2, 3)
    with pulled(uri, port, port + 1) as proxy, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(('127.0.0.2', 0))
        stranger.connect(('127.0.0.1', port))
        wrong = (b'', header[:11], b'\x80\x61' + header[2:] + b'x', b'\xff' * 100,
                 b'\x80\xc8\x00\xff')
        for packet in wrong * 10:
            stranger.send(packet)
        with Sender(*rtp_output(port)):
            wait_up(proxy, 1)
            read = Read(proxy.url(), duration=3)
            wait_for_readers(proxy, 1)
            for _ in range(100):
                stranger.send(header + b'\x65' + bytes(100))
            check_smooth(read.result(), ('video',))
            check_frames(proxy, ('video',))
        counts = dropped(proxy)
    # An empty datagram is dropped before it is counted.
    assert counts[0] >= 40 and counts[1] == 100 and counts[2] == 0, counts


def verdict(upstream):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'c.yaml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f"mounts:\n  /cam:\n    upstream: '{upstream}'\n")
        done = subprocess.run([os.environ['WEIR_RTSP_PROXY'], '--config', path, '--check-config'],
                              capture_output=True, text=True, timeout=20 * SLOWER, check=False)
        return done.stderr.replace(path, 'FILE').strip(), done.returncode


@test
def wrong_upstreams_are_explained():
    address = 'not an address and a port like 239.1.2.3:5000 or [::]:5000'
    wrong = []
    for upstream, reason in (
        ('udp://host:5000', '"host" is not an IP address'),
        ('udp://127.0.0.1', 'the port must be from 1 to 65535'),
        ('udp://127.0.0.1:70000', address),
        ('udp://@239.1.2.3:5000', address),
        ('udp://127.0.0.1:5000/x', address),
        ('udp://127.0.0.1:5000?ifcae=lo', 'unknown parameter "ifcae"; known parameter: iface'),
        ('udp://127.0.0.1:5000?iface=', 'iface is empty'),
        ('udp://127.0.0.1:5000?iface', 'cannot parse the parameters after the \'\'?\'\''),
        ('rtp://127.0.0.1:65535?encoding-name=H264&payload=96', 'the port must be from 1 to 65534'),
        ('rtp://127.0.0.1:5000', 'encoding-name is missing '
         '(rtp://ADDR:PORT?encoding-name=H264&payload=96)'),
        ('rtp://127.0.0.1:5000?encoding-name=H264', 'payload is missing'),
        ('rtp://127.0.0.1:5000?encoding-name=H264&payload=128',
         'payload=128 must be a number from 0 to 127'),
        ('rtp://127.0.0.1:5000?encoding-name=L16&payload=96', 'clock-rate is missing'),
        ('rtp://127.0.0.1:5000?encoding-name=X&payload=96', 'X needs media=video or media=audio'),
        ('rtp://127.0.0.1:5000?encoding-name=H264&payload=96&a;b=c',
         '"a;b" is not a valid parameter name'),
        ('rtp://127.0.0.1:5000?encoding-name=H264&payload=96&a=%0d%0ab',
         'a contains a character that is not allowed'),
        ('sdp://host/x', 'not a URI like sdp:///dir/session.sdp'),
        ('sdp:///no/such.sdp', 'Failed to open file \u201c/no/such.sdp\u201d: '
         'No such file or directory'),
        (f'sdp://{CLIP}', f'{CLIP}: not a session description (SDP)'),
        ('launch: videotestsrc ! nosuchenc ! rtpvp8pay name=pay0',
         'wrong launch line: GStreamer has no element "nosuchenc"'),
        ('launch: videotestsrc ! avenc_nosuch ! rtph264pay name=pay0',
         'wrong launch line: GStreamer has no element "avenc_nosuch"; '
         'on Debian install gstreamer1.0-libav'),
        ('launch: videotestsrc !', 'wrong launch line: '),
        ('launch: videotestsrc ! fakesink', 'the launch line has no payloader named pay0 '
         '(... ! rtph264pay name=pay0)'),
    ):
        message, status = verdict(upstream.replace("''", "'").replace("'", "''"))
        expected = 'rtsp-proxy: FILE:3:15: upstream: ' + reason.replace("''", "'")
        if not message.startswith(expected) or status != 2:
            wrong.append(f'{upstream}: {message!r} {status}, expected {expected!r}')
    assert not wrong, '\n'.join(wrong)


@test
def a_taken_port_and_a_missing_interface_are_named():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(('127.0.0.1', 0))
        port = taken.getsockname()[1]
        with pulled(f'udp://127.0.0.1:{port}') as proxy:
            proxy.wait_for_line(rf' mount /cam down: .*127\.0\.0\.1 port {port}: .*in use')
    with pulled(f'udp://{GROUP}:{port}?iface=nosuch0') as proxy:
        proxy.wait_for_line(r' mount /cam down: .*no such network interface: nosuch0')


if __name__ == '__main__':
    run(at_once=4, shared=[media])
