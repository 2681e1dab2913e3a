#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the lines in pipelines/ as their comments describe."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from launch import PATIENCE, STORE, expect_frames, listen, made_store, running
from proc import free_port
from rangeserver import SWARM_ORIGIN, SWARM_TORRENT, swarm_title
from sanitized import environment, sees_threads
from tap import Skip, run, test

PIPELINES = pathlib.Path(__file__).resolve().parents[2] / 'pipelines'
GROUP = '239.255.77.1'


def line_of(name, changes=()):
    text = (PIPELINES / name).read_text()
    text = '\n'.join(line for line in text.splitlines() if not line.startswith('#'))
    for old, new in changes:
        assert old in text, f'{name} does not contain {old!r}'
        text = text.replace(old, new)
    return text


@test
def serve_udp():
    """serve-udp.launch: two readers get frames without a gap"""
    with listen() as one, listen() as two:
        ports = [each.getsockname()[1] for each in (one, two)]
        with running(line_of('serve-udp.launch', [('5004', str(ports[0])), ('5006', str(ports[1]))])):
            expect_frames(one, 20)
            expect_frames(two, 20)


@test
def store():
    """store-write.launch and store-read.launch: what one has written, the other shows"""
    with made_store() as made:
        for name, pictures in ('store-write.launch', 0), ('store-read.launch', 300):
            line = line_of(name).replace(STORE, made).replace('autovideosink', 'fakesink silent=false')
            done = subprocess.run(['sh', '-c', f'exec gst-launch-1.0 -v {line.strip()}'],
                                  env=environment(), capture_output=True, text=True,
                                  timeout=PATIENCE)
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stdout.count('last-message = chain') == pictures, done.stdout


@test
def swarm():
    """swarm-read.launch: shows the title of the origin"""
    if subprocess.run(['gst-inspect-1.0', 'swarmsrc'], env=environment(),
                      capture_output=True).returncode != 0:
        raise Skip('swarmsrc was not built')
    if sees_threads():
        raise Skip('libtorrent is not built with ThreadSanitizer')
    with swarm_title() as (torrent, origin):
        line = line_of('swarm-read.launch', [(SWARM_TORRENT, torrent), (SWARM_ORIGIN, origin),
                                             ('autovideosink', 'fakesink silent=false')])
        done = subprocess.run(['sh', '-c', f'exec gst-launch-1.0 -v {line.strip()}'],
                              env=environment(), capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count('last-message = chain') == 50, done.stdout


@test
def serve_multicast():
    """serve-multicast.launch: the group gets frames without a gap"""
    with listen(group=GROUP) as reader:
        port = str(reader.getsockname()[1])
        with running(line_of('serve-multicast.launch', [('5008', port)])):
            expect_frames(reader, 20)


def watch(serve, serve_port, receive_changes, receive='receive-udp.launch'):
    """Runs a sender and a receiver. The receiver must exit by itself after 20 pictures."""
    port, other = free_port(), free_port()
    shown = line_of(receive, receive_changes(port) + [
        ('autovideosink', 'identity eos-after=20 ! fakesink silent=false')])
    changes = [(serve_port, str(port))]
    if '5006' in line_of(serve):
        changes.append(('5006', str(other)))
    with running(line_of(serve, changes)):
        done = subprocess.run(
            ['sh', '-c', f'exec gst-launch-1.0 -v {shown.strip()}'], env=environment(),
            capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r'last-message = chain', done.stdout)) >= 19, done.stdout


@test
def receive():
    """receive-udp.launch: shows what serve-udp.launch sends"""
    watch('serve-udp.launch', '5004', lambda port: [('port=5004', f'port={port}')])


@test
def receive_relaysrc():
    """receive-relaysrc.launch: shows what serve-udp.launch sends"""
    watch('serve-udp.launch', '5004', lambda port: [(':5004', f':{port}')], 'receive-relaysrc.launch')


@test
def receive_multicast():
    """receive-udp.launch: shows what serve-multicast.launch sends, edited as its comment says"""
    watch('serve-multicast.launch', '5008', lambda port: [
        ('port=5004', f'address={GROUP} port={port} multicast-iface=lo')])


@test
def serve_paced():
    """serve-paced.launch: the reader gets frames without a gap"""
    with listen() as reader:
        port = str(reader.getsockname()[1])
        with running(line_of('serve-paced.launch', [('5004', port)])):
            expect_frames(reader, 20)


@test
def cache_delay():
    """cache-delay.launch: both windows show pictures, the second one's delayed"""
    # The window now does not wait for the other one.
    shown = line_of('cache-delay.launch', [
        ('autovideosink name=now', 'fakesink name=now silent=false sync=true'),
        ('autovideosink name=then', 'fakesink name=then silent=false sync=true'),
        ('delay=5000000000', 'delay=2000000000')])
    with running(f'-v {shown.strip()}') as process:
        latest, first = {}, {}
        for line in process.stdout:
            match = re.search(r'last-message = chain.*\((now|then):sink\).* pts: (\d+):(\d+):([\d.]+)', line)
            if match:
                name, hours, minutes, seconds = match.groups()
                first.setdefault(name, time.monotonic())
                latest[name] = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
                if name == 'then' and latest[name] > 0.5:
                    break
        assert latest['now'] - latest['then'] > 0.5, latest
        assert first['then'] - first['now'] > 1, first


@test
def cache_channel():
    """cache-channel.launch: each reader gets frames without a gap, the first one at once"""
    with listen() as one, listen() as two:
        ports = [each.getsockname()[1] for each in (one, two)]
        with running(line_of('cache-channel.launch', [
                ('5004', str(ports[0])), ('5006', str(ports[1])),
                ('delay=30000000000', 'delay=3000000000'), ('max-bytes=1000000', 'max-bytes=10000')])):
            expect_frames(one, 20)
            begun = time.monotonic()
            expect_frames(two, 1)
            assert time.monotonic() - begun > 1, 'the reader without a delay waits for the one with a delay'
            expect_frames(two, 39)


def need_svcenc():
    done = subprocess.run(['gst-inspect-1.0', 'svcenc'], env=environment(), capture_output=True)
    if done.returncode != 0:
        raise Skip('element svcenc is missing (it needs OpenH264)')


@test
def serve_layers():
    """serve-layers.launch: two readers get frames without a gap"""
    need_svcenc()
    with listen() as one, listen() as two:
        ports = [each.getsockname()[1] for each in (one, two)]
        with running(line_of('serve-layers.launch', [('5004', str(ports[0])), ('5006', str(ports[1]))])):
            expect_frames(one, 20)
            expect_frames(two, 10)


@test
def receive_layers():
    """receive-layers.launch: shows what serve-layers.launch sends"""
    need_svcenc()
    watch('serve-layers.launch', '5004', lambda port: [('port=5004', f'port={port}')],
          'receive-layers.launch')


@test(timeout=120)
def watch_layers():
    """watch-layers.launch: shows each of the nine streams in its size and at its rate"""
    need_svcenc()
    sizes = (160, 90), (320, 180), (640, 360)
    pictures = {'small': 25, 'middle': 50, 'large': 100}
    for spatial, (width, height) in enumerate(sizes):
        with tempfile.TemporaryDirectory() as directory:
            # Pictures of another size do not pass.
            shown = line_of('watch-layers.launch', [
                ('pattern=ball', 'pattern=ball num-buffers=100'),
                ('max-spatial=0 max-temporal=0', f'max-spatial={spatial} max-temporal=0'),
                ('max-spatial=1 max-temporal=1', f'max-spatial={spatial} max-temporal=1'),
                ('max-spatial=2 max-temporal=2', f'max-spatial={spatial} max-temporal=2'),
                *((f'autovideosink name={name}', f'video/x-raw,format=I420,width={width},height={height} '
                   f'! filesink location={directory}/{name}') for name in pictures)])
            done = subprocess.run(['sh', '-c', f'exec gst-launch-1.0 {shown.strip()}'],
                                  env=environment(), capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode == 0, done.stdout + done.stderr
            counts = {name: os.path.getsize(os.path.join(directory, name)) / (width * height * 3 // 2)
                      for name in pictures}
        assert counts == pictures, counts


@test
def readme():
    """every launch file is in the README and says how to run it"""
    text = (PIPELINES / 'README.md').read_text()
    for path in sorted(PIPELINES.glob('*.launch')):
        assert f']({path.name})' in text, path.name
        assert f"gst-launch-1.0 $(grep -v '^#' pipelines/{path.name})" in path.read_text(), path.name


@test
def as_typed():
    """a line runs exactly as its comment says, in sh"""
    root = PIPELINES.parent
    process = subprocess.Popen(
        ['sh', '-c', '''exec sh -c "exec gst-launch-1.0 $(grep -v '^#' pipelines/serve-udp.launch)"'''],
        cwd=root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        seen = []
        for text in process.stdout:
            seen.append(text)
            if 'to PLAYING' in text or 'New clock' in text:
                break
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and 'PLAYING' in ''.join(seen) + output, ''.join(seen) + output
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == '__main__':
    run()
