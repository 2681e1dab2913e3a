# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-proxy import-mediamtx: its result beside MediaMTX with the original, for the same clients."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

from proc import Proc, Rtsp, free_port
from proxy import CLIP, Proxy, environment, program, said, wait_until
from tap import SLOWER, Skip, run, test

SECRET = 'gate-42'

# As an operator of forty cameras has it: two publishers, recordings, HLS, users, metrics, a reverse
# proxy. 106 lines.
REALISTIC = '''\
logLevel: warn
logDestinations: [stdout]
readTimeout: 15s
writeQueueSize: 1024
authMethod: internal
authInternalUsers:
  - user: any
    ips: [192.0.2.0/24]
    permissions:
      - action: read
  - user: encoder
    pass: gate-42
    permissions:
      - action: publish
        path: ~^live/
api: yes
metrics: yes
metricsAddress: 127.0.0.1:9998
rtspTransports: [udp, tcp]
hlsSegmentDuration: 2s
hlsTrustedProxies: [127.0.0.1]
webrtcAdditionalHosts: [198.51.100.7]
playback: no
''' + '''\
pathDefaults:
  recordPath: {folder}/%path/%Y-%m-%d_%H-%M-%S-%f
  record: no
paths:
  live/gate:
  live/yard:
    overridePublisher: no
''' + ''.join(f'''\
  hall/cam{number}:
    source: rtsp://viewer:{SECRET}@192.0.2.{100 + number}/stream
{"    record: yes" if number <= 12 else "    rtspTransport: tcp"}
''' if number <= 18 else f'''\
  hall/cam{number}: {{source: "rtsp://192.0.2.{100 + number}/stream"}}
''' for number in range(1, 41))

# One that both programs can serve here.
COMMON = '''
readTimeout: 20s
rtspAddress: 127.0.0.1:{rtsp}
rtpAddress: 127.0.0.1:{rtp}
rtcpAddress: 127.0.0.1:{rtcp}
rtmpAddress: 127.0.0.1:{rtmp}
hlsAddress: 127.0.0.1:{hls}
hlsAlwaysRemux: yes
webrtc: no
moq: no
srtAddress: 127.0.0.1:{srt}
authInternalUsers:
  - {{user: any, permissions: [{{action: read, path: ~^open/}}]}}
  - {{user: encoder, pass: gate-42, permissions: [{{action: publish, path: ~^open/live/}}]}}
  - {{user: viewer, pass: gate-42, permissions: [{{action: read}}]}}
pathDefaults: {{rtspTransport: tcp}}
paths:
  open/cam: {{source: "{origin}"}}
  closed/cam: {{source: "{origin}", sourceOnDemand: yes}}
  ~^open/live/(.+)$:
'''


def imported(text, folder, *words):
    """Returns the path of the result, and the notes."""
    original, result = os.path.join(folder, 'mediamtx.yml'), os.path.join(folder, 'rtsp-proxy.yaml')
    with open(original, 'w', encoding='utf-8') as file:
        file.write(text)
    done = subprocess.run([program(), 'import-mediamtx', *words, '-o', result, original],
                          capture_output=True, text=True, timeout=20 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    return result, done.stderr


def checked(result):
    with open(result, encoding='utf-8') as file:
        text = file.read()
    answer, status = said(text, '--check-config')
    assert status == 0, answer
    return text


@test
def a_realistic_file_becomes_a_short_one():
    with tempfile.TemporaryDirectory() as folder:
        original = REALISTIC.replace('{folder}', folder)
        result, notes = imported(original, folder)
        text = checked(result)
        assert os.stat(result).st_mode & 0o077 == 0
        lines = text.count('\n')
        assert original.count('\n') >= 106 and lines <= 110, (original.count('\n'), lines)
        print(f'# {original.count(chr(10))} lines of MediaMTX become {lines}')
        assert text.count('upstream: ') == 42 and text.count('record: {') >= 1
        keys = re.findall(r'^ *(\w+):(?!\d)', original, re.M)
        for key in set(keys) - {f'cam{n}' for n in range(41)} - {'ips', 'permissions', 'path', 'pass', 'cam', 'gate', 'yard'}:
            assert f' {key}: ' in notes, key
        again = subprocess.run([program(), 'import-mediamtx', '-o', result, os.path.join(folder, 'mediamtx.yml')],
                               capture_output=True, text=True, timeout=20 * SLOWER, check=False)
        assert again.returncode == 1 and 'File exists' in again.stderr, again


@test
def the_command_says_how_it_is_used():
    for words, status, text in (
            (['--help'], 0, 'rtsp-proxy import-mediamtx -o rtsp-proxy.yaml mediamtx.yml'),
            ([], 2, 'expected one file'), (['a', 'b'], 2, 'expected one file'), (['--odd'], 2, '--help'),
            (['/does/not/exist'], 1, 'cannot read /does/not/exist'), (['/'], 1, 'cannot read /')):
        done = subprocess.run([program(), 'import-mediamtx', *words], capture_output=True, text=True,
                              timeout=20 * SLOWER, check=False)
        assert done.returncode == status and text in done.stdout + done.stderr, (words, done)


def mediamtx():
    path = shutil.which('mediamtx')
    if not path:
        raise Skip('mediamtx is not on the PATH')
    if not shutil.which('ffmpeg'):
        raise Skip('ffmpeg is not on the PATH')
    return path


class Server(Proc):
    """A program with the servers of COMMON."""

    def __init__(self, ports, hls, *words):
        self.ports, self.hls = ports, hls
        super().__init__(*words, env=environment())

    def url(self, path, user=''):
        return f'rtsp://{user}127.0.0.1:{self.ports["rtsp"]}/{path}'

    def status(self, path):
        with Rtsp(self.ports['rtsp'], timeout=30) as rtsp:
            return rtsp.request('DESCRIBE', self.url(path))[0]


def ports():
    numbers = {name: free_port() for name in ('rtsp', 'rtp', 'rtmp', 'hls', 'srt')}
    return {**numbers, 'rtcp': numbers['rtp'] + 1}


@contextlib.contextmanager
def both(origin):
    """Runs MediaMTX with a file, and Weir with what it becomes."""
    original = mediamtx()
    with contextlib.ExitStack() as stack:
        servers = []
        for is_weir in False, True:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            numbers = ports()
            result, _ = imported(COMMON.format(origin=origin, **numbers), folder)
            checked(result)
            words = (program(), '--config', result) if is_weir else (original, os.path.join(folder, 'mediamtx.yml'))
            servers.append(stack.enter_context(
                Server(numbers, '/hls/' if is_weir else '/', *words)))
        for server in servers:
            wait_until(lambda server=server: answers(server), 20, f'{server.command} serves')
        yield servers


def answers(server):
    try:
        return server.status('open/cam') == 200
    except OSError:
        return False


def frames(url, *words, seconds=1):
    """Returns the codecs of the tracks that FFmpeg reads from this URL, or None if it is refused."""
    done = subprocess.run(
        ['ffmpeg', '-nostdin', '-v', 'error', *words, '-i', url, '-copyinkf', '-t', str(seconds), '-map', '0',
         '-c', 'copy', '-f', 'framehash', '-'], capture_output=True, text=True, timeout=30 * SLOWER, check=False)
    if done.returncode:
        return None
    found = {line.split(',')[0] for line in done.stdout.splitlines() if not line.startswith('#')}
    codecs = dict(re.findall(r'^#codec_id (\d): (\w+)$', done.stdout, re.M))
    return sorted(codecs[index] for index in found)


def publish(*target):
    return Proc('ffmpeg', '-nostdin', '-v', 'error', '-re', '-stream_loop', '-1', '-i', CLIP, '-c', 'copy',
                *target, env=environment())


def playlist(server, path):
    """Returns the status of a playlist of HLS."""
    url = f'http://127.0.0.1:{server.ports["hls"]}{server.hls}{path}/index.m3u8'
    try:
        with urllib.request.urlopen(url, timeout=20 * SLOWER) as answer:
            return answer.status if answer.read().startswith(b'#EXTM3U') else 'no playlist'
    except urllib.error.HTTPError as error:
        return error.code


@test(timeout=180)
def the_same_readers_get_the_same_streams():
    mediamtx()
    with Proxy({'/clip': f'file://{CLIP}'}) as origin, both(origin.url('/clip')) as servers:
        user, wrong = f'viewer:{SECRET}@', 'viewer:no@'
        results = [{
            'tcp': frames(server.url('open/cam'), '-rtsp_transport', 'tcp'),
            'udp': frames(server.url('open/cam'), '-rtsp_transport', 'udp'),
            'user': frames(server.url('closed/cam', user), '-rtsp_transport', 'tcp'),
            'nobody': server.status('closed/cam'),
            'wrong': frames(server.url('closed/cam', wrong), '-rtsp_transport', 'tcp'),
            'srt': frames(f'srt://127.0.0.1:{server.ports["srt"]}?streamid=read:closed/cam:viewer:{SECRET}',
                          seconds=6),  # MediaMTX begins between two keyframes
            'hls': playlist(server, 'open/cam'),
        } for server in servers]
        assert results[0] == results[1], results
        assert results[0]['tcp'] == results[0]['user'] == results[0]['srt'] == ['aac', 'h264'], results
        assert results[0]['wrong'] is None and results[0]['hls'] == 200, results


@test(timeout=180)
def the_same_publishers_may_publish():
    mediamtx()
    with Proxy({'/clip': f'file://{CLIP}'}) as origin, both(origin.url('/clip')) as servers:
        for server in servers:
            rtsp, rtmp = server.ports['rtsp'], server.ports['rtmp']
            targets = {
                'a': ('-f', 'rtsp', '-rtsp_transport', 'tcp', f'rtsp://encoder:{SECRET}@127.0.0.1:{rtsp}/open/live/a'),
                'b': ('-f', 'flv', f'rtmp://127.0.0.1:{rtmp}/open/live/b?user=encoder&pass={SECRET}'),
            }
            with contextlib.ExitStack() as stack:
                for name, target in targets.items():
                    stack.enter_context(publish(*target))
                    wait_until(lambda server=server, name=name: server.status(f'open/live/{name}') == 200, 20,
                               f'{server.command}: {name} is published')
                    assert frames(server.url(f'open/live/{name}'), '-rtsp_transport', 'tcp') == ['aac', 'h264']
            with publish('-f', 'rtsp', '-rtsp_transport', 'tcp',
                         f'rtsp://encoder:no@127.0.0.1:{rtsp}/open/live/c') as refused:
                assert refused.wait(20 * SLOWER) != 0, server.command


@test
def the_default_file_is_taken():
    example = os.path.join(os.path.dirname(mediamtx()), 'mediamtx.yml')
    if not os.path.exists(example):
        raise Skip('the folder of mediamtx has no mediamtx.yml')
    with tempfile.TemporaryDirectory() as folder, open(example, encoding='utf-8') as file:
        result, notes = imported(file.read(), folder)
        checked(result)
        assert 'does not know this key' not in notes, notes


if __name__ == '__main__':
    run()
