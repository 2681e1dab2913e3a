# SPDX-License-Identifier: LGPL-2.1-or-later
"""--list-stages and --explain print correct text, and the printed line runs."""

import os
import re
import signal
import socket
import struct
import subprocess
import tempfile

from sanitized import environment
from tap import SLOWER, run, test

PROXY = os.environ['WEIR_RTSP_PROXY']
CLIP = os.path.join(os.environ['WEIR_DATA'], 'bigbuckbunny.mp4')
GREY = '---\nsummary: no colours\nmedia: video\ntakes: raw\ngives: raw\n---\nvideobalance saturation=0\n'


def proxy(*args):
    done = subprocess.run([PROXY, *args], capture_output=True, timeout=20 * SLOWER, text=True,
                          stdin=subprocess.DEVNULL)
    return done.stdout, done.stderr, done.returncode


@test
def stages_are_listed():
    """--list-stages shows each stage, its inputs and outputs, and its parameters' ranges"""
    out, err, status = proxy('--list-stages')
    assert (err, status) == ('', 0), (err, status)
    assert re.findall(r'^(\S+): ', out, re.M) == ['aac', 'caption', 'cross-fade', 'cross-fade-sound', 'decode', 'decode-audio',
                                                      'late', 'layers', 'mix', 'opus', 'overlay', 'pace', 'picture-in-picture', 'pull', 'restamp', 'transcode'], out
    assert 'takes video raw; gives rtp of H264' in out, out
    assert 'takes video raw of 2 mounts; gives raw' in out and 'takes audio raw of 2 to 4 mounts' in out, out
    assert re.search(r'^ +rate +bitrate \(bit/s\), from 32k to 50M, default 600k$', out, re.M)


@test
def own_stages_come_first():
    """--stages DIR: its stages are listed too, and a mistake in one is reported with its place"""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, 'grey.launch'), 'w') as file:
            file.write(GREY)
        out, err, status = proxy('--stages', directory, '--list-stages')
        assert status == 0 and '\ngrey: no colours\n' in out, out + err
        with open(os.path.join(directory, 'grey.launch'), 'w') as file:
            file.write(GREY.replace('=0', '={x}'))
        out, err, status = proxy('--stages', directory, '--list-stages')
        assert (out, status) == ('', 2), out
        assert err == (f'rtsp-proxy: {directory}/grey.launch:7:25: placeholder {{x}} is not allowed '
                       'here; allowed: none\n'), err
        out, err, status = proxy('--stages', directory + '/none', '--list-stages')
        assert status == 2 and 'no such folder' in err, err


def refused(*args):
    out, err, status = proxy('--mount', f'/cam=file://{CLIP}', '--explain', *args)
    assert (out, status) == ('', 2), (out, status)
    return err


@test
def an_unknown_mount_or_choice_is_refused():
    """--explain: an unknown mount or choice is refused"""
    assert 'there is no mount' in refused('/other')
    assert 'there is no mount' in refused('/ca')
    assert 'is not a choice of this mount' in refused('/cam?size=320x180')


CONFIG = f"""\
mounts:
  /cam:
    upstream: file://{CLIP}
    pipeline: [pull, restamp]
    choices:
      transcode: [size, rate]
"""


def configured(text, *args):
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(text)
        file.flush()
        out, err, status = proxy('--config', file.name, *args)
        return out, err.replace(file.name, 'FILE'), status


@test
def a_mount_has_a_pipeline_and_choices():
    """--explain: the output has a mount's pipeline with the choices of a URL"""
    out, err, status = configured(CONFIG, '--explain', '/cam?rate=300k&size=320x180')
    assert (err, status) == ('', 0), (err, status)
    key = out.splitlines()[1]
    assert re.fullmatch(r'# pull\(.*\) ! restamp\(limit=2000\) ! decode\(\) ! '
                        r'transcode\(encoder=\w+,keys=2000,rate=300000,size=320x180\)', key), key
    again, _, _ = configured(CONFIG, '--explain', '/cam?size=320x180&rate=0.3M')
    assert again.splitlines()[1] == key, again
    assert configured(CONFIG, '--explain', '/cam?keys=1s')[2] == 2


@test
def a_paced_pipeline_is_explained():
    """--explain: behind ratepacer, the sink neither waits for the clock nor gathers packets"""
    out, err, status = configured(CONFIG.replace('restamp', 'pace'), '--explain', '/cam')
    assert (err, status) == ('', 0), err
    line = out.splitlines()[-1]
    assert line.endswith("! ratepacer max-burst=1 ! fanoutsink sync=false max-coalesce=0 clients=127.0.0.1:5004'") \
        or line.endswith('! ratepacer max-burst=1 ! fanoutsink sync=false max-coalesce=0 clients=127.0.0.1:5004'), line
    assert 'fanoutsink clients=' in configured(CONFIG, '--explain', '/cam')[0].splitlines()[-1]


@test
def worker_processes_are_explained():
    """--explain: the output says what runs in worker processes"""
    for isolate, expected in (('no', []), ('auto', ['reads the upstream', 'runs decode', 'runs transcode']),
                              ('yes', ['reads the upstream', 'runs restamp', 'runs decode', 'runs transcode'])):
        out = configured(f'isolate: {isolate}\n{CONFIG}', '--explain', '/cam?size=320x180')[0]
        told = re.findall(r'^# A worker process (.*)\.$', out, re.M)
        assert told == expected, (isolate, out)


@test
def what_is_pushed_is_explained():
    """--explain: the output names the receivers of the mount, without secrets"""
    pushed = CONFIG + '    push: [rtmp://h/live/S3cret, "udp://239.1.1.1:5000"]\n'
    out, err, status = configured(pushed, '--explain', '/cam')
    assert (err, status) == ('', 0), err
    assert re.findall(r'^# The stream is sent to (.*)\.$', out, re.M) == [
        'rtmp://h:1935/live/***', 'udp://239.1.1.1:5000'], out
    assert 'sent to' not in configured(pushed, '--explain', '/cam?rate=300k&size=320x180')[0]


@test
def ways_to_a_mount_are_explained():
    """--explain: the output says where clients over HTTP, SRT and RTMP read and publish"""
    text = (f'http: {{listen: 0.0.0.0:8888}}\nsrt: {{listen: "[::1]:8890"}}\nrtmp: {{listen: 127.0.0.1:1935}}\n{CONFIG}'
            '  /live/in:\n    upstream: publish\n')

    def told(url):
        return [line for line in configured(text, '--explain', url)[0].splitlines() if ' over ' in line]

    assert told('/cam?rate=300k&size=320x180') == [
        '# Readers over HTTP get it at http://0.0.0.0:8888/hls/cam/index.m3u8?rate=300k&size=320x180, '
        '/watch/cam?rate=300k&size=320x180 and /ts/cam?rate=300k&size=320x180.',
        '# Readers over SRT call srt://[::1]:8890 with the stream id read:cam?rate=300k&size=320x180.'], told('/cam')
    assert told('/live/in')[1:] == [
        '# Readers over SRT call srt://[::1]:8890 with the stream id read:live/in.',
        '# Publishers over SRT call srt://[::1]:8890 with the stream id publish:live/in.',
        '# Publishers over RTMP send to rtmp://127.0.0.1:1935/live/in.'], told('/live/in')


@test
def the_cost_of_a_broadcast_is_explained():
    """--explain: a mount with a broadcast has the groups and streams of its scheme"""
    def told(broadcast):
        return configured(f'mounts:\n  /films:\n    upstream: file:///tmp/\n'
                          f'    broadcast: {{groups: 239.1.1.0/28, {broadcast}}}\n',
                          '--explain', '/films')[0]

    # 10 + 20 + 40 + ... s: 7 segments are 1270 s.
    out = told('scheme: gdb, first: 10s')
    assert re.search(r'^#  20 min +7 +6\.89 +2$', out, re.M) and 'clients/min' not in out, out
    # (sqrt (2 L rate + 1) - 1) / rate for 3600 s and 10 clients a minute.
    out = told('scheme: patching')
    assert re.search(r'^#  60 min +10 +201\.9 s +33\.66$', out, re.M) and 'groups  ' not in out, out
    out = told('scheme: auto, threshold: 30s')
    assert re.search(r'^#   5 min +5 +4\.94 +3$', out, re.M), out
    assert len(re.findall(r' 30\.0 s ', out)) == 12, out


@test
def the_values_of_a_swarm_are_explained():
    """--explain: a mount of torrents has the values of its swarm, without the origin's password"""
    def told(swarm):
        out, err, status = configured(f'mounts:\n  /films:\n    upstream: swarm:///tmp/\n'
                                      f'    swarm: {{{swarm}}}\n', '--explain', '/films')
        assert (err, status) == ('', 0), (err, status)
        return out.splitlines()

    out = told('origin: "http://me:secret@10.0.0.1/films/", upload: 6M, storage: 50%, folder: /tmp, '
               'picker: adaptive, window: 90s, leave: stream, networks: 10.0.0.0/8, '
               'peers: "10.0.0.7:6881", listen: "127.0.0.1:6881", trackers: no, choking: rate-blind')
    assert out[0] == '# /films' and 'secret' not in ''.join(out), out
    for line in ('# Peers are asked by the picker adaptive, with a window of 90 s.',
                 '# Peers and trackers may be in 10.0.0.0/8.',
                 '# Peers are found by: 10.0.0.7:6881 exchange.',
                 '# They reach this proxy at 127.0.0.1:6881, and get up to 6M, rate-blind.',
                 '# 50% of each title is kept in /tmp.',
                 '# A title leaves the swarm a minute after its last reader.'):
        assert line in out, (line, out)
    out = told('titles: 1, dht: yes, networks: "0.0.0.0/0,::/0"')
    for line in ('# What comes too late from peers comes from the web seed of the torrent.',
                 '# Peers are found by: trackers exchange dht.',
                 '# 256M of each title is kept in memory.',
                 '# Up to 1 title stays in the swarm without readers.'):
        assert line in out, (line, out)


@test
def layers_and_a_delay_are_explained():
    """--explain: layers and a delay are accepted as in a reader's URL"""
    cached = CONFIG + '    cache: {time: 60s}\n'
    plain = configured(CONFIG, '--explain', '/cam?size=320x180')[0].splitlines()[1:]
    for text, query, notes in [
            (CONFIG, 'layers=0.0.1', ['gets the layers up to 0.0.1']),
            (cached, 'delay=30', ['starts 30 s behind']),
            (cached, 'delay=1.5s&layers=*.*.1', ['gets the layers up to *.*.1', 'starts 1.5 s behind']),
            (cached, 'delay=99999999', ['starts at the oldest packet'])]:
        out, err, status = configured(text, '--explain', f'/cam?{query}&size=320x180')
        assert (err, status) == ('', 0), (query, err, status)
        lines = out.splitlines()
        assert lines[0] == f'# /cam?{query}&size=320x180', out
        for line, note in zip(lines[1:], notes):
            assert line.startswith(f'# the reader {note}'), (line, note)
        assert lines[1 + len(notes):] == plain, out
    for text, query, wrong in [
            (CONFIG, 'delay=30', '"delay" is not a choice of this mount'),
            (cached, 'delay=soon', 'delay is not a time'),
            (CONFIG, 'layers=1', 'layers must be given once'),
            (CONFIG + '    adapt: off\n', 'layers=0.0.1', 'because the mount has adapt: off')]:
        err, status = configured(text, '--explain', f'/cam?{query}')[1:]
        assert status == 2 and wrong in err, (query, err)


@test
def mistakes_in_a_pipeline_have_a_place():
    """--check-config: a mistake in a pipeline is reported with its place"""
    for old, new, expected in (
            ('restamp', 'restmap', 'FILE:4:22: pipeline: there is no stage "restmap"; known stages: '),
            ('restamp', '{restamp: {limit: 1h}}', 'FILE:4:40: pipeline: limit: "1h" is not a duration '),
            ('[pull, restamp]', '[restamp]', 'FILE:2:3: pipeline: stage restamp: the first stage must '),
            ('restamp', 'decode', 'FILE:2:3: pipeline: stage decode: gives raw video; '),
            ('pull,', '{pull: {transport: tcp}},', 'FILE:4:35: pipeline: pull takes no parameters here'),
            ('size,', 'sise,', 'FILE:2:3: choices: stage transcode has no parameter "sise"')):
        out, err, status = configured(CONFIG.replace(old, new), '--check-config')
        assert status == 2 and err.startswith(f'rtsp-proxy: {expected}'), (new, out, err)


@test
def the_printed_line_runs():
    """--explain: a shell runs the printed line, and port 5004 gets the clip's video"""
    out, err, status = proxy('--mount', f'/cam=file://{CLIP}', '--explain', '/cam')
    assert (err, status) == ('', 0), (err, status)
    assert out.startswith('# /cam\n# pull(simulcast=1,transport=auto,upstream=file:'), out
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader:
        reader.bind(('127.0.0.1', 0))
        reader.settimeout(20)
        line = out.replace('127.0.0.1:5004', f'127.0.0.1:{reader.getsockname()[1]}')
        assert line != out
        process = subprocess.Popen(['sh', '-c', line], env=environment(), start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            frames = 0
            while frames < 20:
                first, second = struct.unpack('!BB', reader.recv(65536)[:2])
                assert first >> 6 == 2
                frames += second >> 7
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@test
def credentials_are_not_shown():
    """--explain: its output never shows a password from the URI"""
    out, err, status = proxy('--mount', '/cam=rtsp://user:secret@192.0.2.7/x', '--explain', '/cam')
    assert status == 0 and 'secret' not in out + err and 'user:' not in out + err, out + err
    assert "gst-launch-1.0 rtspsrc 'location=\"rtsp://192.0.2.7/x\"' latency=0" in out, out


@test
def the_documentation_runs():
    """docs/pipelines.md: each of its lines that needs no proxy runs"""
    path = os.path.join(os.environ['WEIR_DATA'], '..', '..', 'docs', 'pipelines.md')
    with open(path) as file:
        text = file.read()
    configuration = re.findall(r'^```yaml\n(.*?)^```', text, re.M | re.S)[0]
    out, err, status = configured(configuration, '--explain', '/cam?size=320x180&rate=300k')
    assert status == 0 and ' ! transcode(' in out, err
    blocks = [block for block in re.findall(r'^```sh\n(.*?)^```', text, re.M | re.S)
              if 'curl ' not in block]
    assert len(blocks) == 2, blocks
    for block in blocks:
        done = subprocess.run(['sh', '-e', '-c', block.replace('rtsp-proxy', PROXY)],
                              capture_output=True, timeout=30 * SLOWER, text=True, env=environment())
        assert done.returncode == 0 and not done.stderr, block + done.stderr


if __name__ == '__main__':
    run()
