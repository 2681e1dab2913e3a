# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy with a live mount, and what its HLS says."""

import http.client
import os
import re
import shutil
import subprocess
import tempfile
import time
from functools import lru_cache

from control import Controlled
from once import make_once
from tap import SLOWER, Skip

PATIENT = {'start-timeout': '30s', 'connect-timeout': '30s', 'read-timeout': '30s', 'linger': '200ms'}
VIDEO = {
    'h264': ['libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', '25'],
    'h264-reordered': ['libx264', '-preset', 'veryfast', '-bf', '2', '-g', '25', '-x264-params', 'scenecut=0'],
    'h265': ['libx265', '-preset', 'ultrafast', '-x265-params', 'keyint=25:bframes=0:log-level=none'],
    'vp9': ['libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-g', '25'],
}
AUDIO = {'aac': ['aac'], 'opus': ['libopus']}


FOLDER = tempfile.TemporaryDirectory()  # of clips


@lru_cache
def clip(video='h264', audio='aac', seconds=40):
    """Makes a clip. Returns its path."""
    if not shutil.which('ffmpeg'):
        raise Skip('no ffmpeg found')
    path = os.path.join(FOLDER.name, f'{video}-{audio}-{seconds}.{"mp4" if "264" in video else "mkv"}')
    command = ['ffmpeg', '-y', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25']
    if audio:
        command += ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000']
    command += ['-t', str(seconds), '-c:v', *VIDEO[video], '-pix_fmt', 'yuv420p', '-b:v', '300k']
    command += ['-c:a', *AUDIO[audio], '-ac', '2'] if audio else []
    return make_once(path, lambda: subprocess.run([*command, path], check=True))


TONES = 440, 1000, 2500
LANGUAGES = 'deu', 'eng', 'eng'


@lru_cache
def film(*codecs, video=True, form='mp4', languages=LANGUAGES, seconds=40):
    """Makes a file with a track of sound of each of the codecs, each of another tone. Returns its path."""
    path = os.path.join(FOLDER.name, f'{"-".join(codecs)}-{video}-{"-".join(languages)}-{seconds}.{form}')
    command = ['ffmpeg', '-y', '-v', 'error']
    if form == 'ts':
        source = film(*codecs, video=video, languages=languages)
        return make_once(path, lambda: subprocess.run([*command, '-i', source, '-map', '0', '-c', 'copy', path], check=True, timeout=60 * SLOWER))
    command += ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=25'] if video else []
    for tone in TONES[:len(codecs)]:
        # Without noise, frames would be equal.
        command += ['-f', 'lavfi', '-i', f'sine=frequency={tone}:sample_rate=48000[a];anoisesrc=sample_rate=48000:amplitude=0.01:seed=1[b];[a][b]amix']
    for i in range(len(codecs) + video):
        command += ['-map', str(i)]
    for i, (codec, language) in enumerate(zip(codecs, languages)):
        command += [f'-c:a:{i}', codec, f'-ac:a:{i}', str(i % 2 + 1), f'-metadata:s:a:{i}', f'language={language}']
    command += ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', '25', '-pix_fmt', 'yuv420p', '-b:v', '300k']
    return make_once(path, lambda: subprocess.run([*command, '-strict', '-2', '-t', str(seconds), path], check=True, timeout=60 * SLOWER))


class Web(Controlled):
    """A proxy with /cam, also over HTTP."""

    def __init__(self, upstream=None, mount=None, mounts=None, web=None, **top):
        source = upstream or f'file://{clip()}'
        super().__init__({'/cam': {'upstream': source, **PATIENT, **(mount or {})}, **(mounts or {})},
                         http={'listen': '127.0.0.1:0', **(web or {})}, **top)
        self.web_port = int(self.wait_for_line(r' titles http://[\d.]+:(\d+)')[1])
        self.web = f'http://127.0.0.1:{self.web_port}'

    def fetch(self, path, headers=None, method='GET', body=None):
        """Returns status, headers and body of an answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self.web_port, timeout=60)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, data

    def begin(self, name='index.m3u8', mount='/cam'):
        """Begins a session. Returns the folder of its playlist, and the playlist's name."""
        status, _, body = self.fetch(f'/hls{mount}/{name}')
        assert status == 200, (status, body)
        uri = [line for line in body.decode().splitlines() if not line.startswith('#')][0]
        folder, name = uri.rsplit('/', 1)
        return f'/hls{mount}/{folder}', name

    def playlist(self, folder, name='live.m3u8', query=''):
        status, headers, body = self.fetch(f'{folder}/{name}{query}')
        assert status == 200, (status, body)
        assert headers['content-type'] == 'application/vnd.apple.mpegurl', headers
        assert headers['access-control-allow-origin'] == '*', headers
        return body.decode()


# ---- playlists ----

def attributes(line):
    return dict(re.findall(r'([A-Z0-9-]+)=("[^"]*"|[^,]*)', line.split(':', 1)[1]))


def variants(proxy, name='index.m3u8'):
    """Returns [(attributes, URI)] of the master playlist of a new session."""
    status, _, body = proxy.fetch(f'/hls/cam/{name}')
    assert status == 200, (status, body)
    found = re.findall(r'^#EXT-X-STREAM-INF:(.*)\n(~.*)$', body.decode(), re.M)
    return [(attributes('x:' + each), uri) for each, uri in found]


# ---- frames ----

def frames(url, *options):
    """Returns {stream: {hash: presentation time}} of decoded pictures and of the packets of audio,
    without hashes that come twice. ffmpeg would round the times of pictures to whole frames."""
    done = subprocess.run(
        ['ffmpeg', '-v', 'error', '-i', url, *options, '-map', '0:v?', '-map', '0:a', '-c:a', 'copy', '-pix_fmt', 'yuv420p',
         '-fps_mode', 'passthrough', '-enc_time_base:v', '1:90000', '-copyts', '-f', 'framehash', '-hash', 'md5', '-'],
        capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    assert done.returncode == 0, done.stderr
    found, twice, units = {}, set(), {}
    for line in done.stdout.splitlines():
        if unit := re.match(r'#tb (\d): (\d+)/(\d+)', line):
            units[unit[1]] = int(unit[2]) / int(unit[3])
        elif not line.startswith('#'):
            stream, _, pts, _, _, digest = (each.strip() for each in line.split(',')[:6])
            times = found.setdefault(stream, {})
            if digest in times:
                twice.add(digest)
            times[digest] = int(pts) * units[stream]
    return {stream: {k: v for k, v in times.items() if k not in twice} for stream, times in found.items()}


def check_times(got, source, least):
    """Checks that frames are the source's, all of a stretch, at the same distances, also between
    tracks."""
    shifts = []
    for stream, times in got.items():
        # FFmpeg 7 writes the first packet of Opus at -7 ms, which demuxers of GStreamer move to 0.
        source[stream] = {key: at for key, at in source[stream].items() if at >= 0}
        both = sorted((source[stream][key], when) for key, when in times.items() if key in source[stream])
        assert len(both) >= least and len(both) >= 0.9 * len(times), (stream, len(both), len(times))
        offsets = [when - at for at, when in both]
        assert max(offsets) - min(offsets) < 0.001, (stream, min(offsets), max(offsets))
        stretch = [at for at in source[stream].values() if both[0][0] <= at <= both[-1][0]]
        assert len(stretch) == len(both), (stream, len(stretch), len(both))
        shifts.append(offsets[0])
    assert max(shifts) - min(shifts) < 0.005, shifts


# ---- live playlists ----

def check_live(text):
    """Checks the rules that mediastreamvalidator checks, of RFC 8216bis, 4.4 and 6.2.2, appendix B.
    Returns the numbers that never change."""
    lines = [line for line in text.splitlines() if not line.startswith('#EXT-X-RENDITION-REPORT:')]
    assert lines[0] == '#EXTM3U' and text.endswith('\n')
    single = {line.split(':')[0]: line.split(':', 1)[1] for line in lines if line.startswith('#EXT') and ':' in line}
    target = int(single['#EXT-X-TARGETDURATION'])
    control = attributes('x:' + single['#EXT-X-SERVER-CONTROL'])
    part_target = float(attributes('x:' + single['#EXT-X-PART-INF'])['PART-TARGET'])
    assert control['CAN-BLOCK-RELOAD'] == 'YES', control
    assert float(control['PART-HOLD-BACK']) >= 3 * part_target - 1e-6, control
    assert float(control['CAN-SKIP-UNTIL']) >= 6 * target, control
    assert int(single['#EXT-X-VERSION']) >= 9, single
    assert '#EXT-X-MAP' in single and lines[-1].startswith('#EXT-X-PRELOAD-HINT:TYPE=PART,URI="'), lines[-1]
    sequence = int(single['#EXT-X-MEDIA-SEQUENCE'])
    parts, numbers, segments, gap = [], [], 0, False
    for line in lines:
        if line.startswith('#EXT-X-PART:'):
            one = attributes(line)
            parts.append((float(one['DURATION']), 'INDEPENDENT' in one or 'GAP' in one))
            numbers.append(int(re.search(r'part(\d+)\.mp4', one['URI'])[1]))
        elif line == '#EXT-X-GAP':
            gap = True
        elif line.startswith('#EXTINF:'):
            duration = float(line[8:].split(',')[0])
            assert round(duration) <= target, line
            if parts:
                assert abs(sum(each for each, _ in parts) - duration) < 0.002, (parts, duration)
                assert parts[0][1], 'a segment begins with a keyframe'
                check_parts(parts[:-1], part_target)
            parts = []
        elif not line.startswith('#'):
            assert line == f'seg{sequence + segments}.mp4', (line, sequence, segments)
            segments, gap = segments + 1, False
    check_parts(parts, part_target)
    hint = int(re.search(r'part(\d+)\.mp4', lines[-1])[1])
    assert not gap and numbers == list(range(hint - len(numbers), hint)), (numbers, hint)
    return target, part_target, control['PART-HOLD-BACK']


def check_parts(parts, part_target):
    for duration, _ in parts:
        assert 0.85 * part_target <= duration <= part_target + 1e-6, (duration, part_target)


# ---- the page ----

SHOWN = '''(() => { const q = video.getVideoPlaybackQuality(); return { frames: q.totalVideoFrames,
dropped: q.droppedVideoFrames, time: video.currentTime, latency: Number(state.dataset.latency || 0) }; })()'''


def plays_smoothly(browser):
    """Watches the page for 5 s. Returns None if it lacked no picture and did not stop, else what it did."""
    first, start = browser.run(SHOWN), time.monotonic()
    browser.wait(f'video.currentTime > {first["time"]} + 5', 20, 'it goes on')
    last, passed = browser.run(SHOWN), time.monotonic() - start
    pictures, played = last['frames'] - first['frames'], last['time'] - first['time']
    return None if pictures >= 25 * played - 5 and passed < 7 else (first, last, passed)


def check_page(proxy, browser):
    browser.open(f'{proxy.web}/watch/cam')
    browser.wait('video.currentTime > 0 && video.getVideoPlaybackQuality().totalVideoFrames > 50', 40, 'it plays')
    # A machine that has other work may stop the browser for a moment.
    for _ in range(3):
        if not (fault := plays_smoothly(browser)):
            break
    assert not fault, fault
    # A busy machine may have delayed the page, which then catches up.
    latency = browser.wait('state.dataset.latency < 3 && Number(state.dataset.latency)', 30, 'a low latency')
    shown = browser.run(SHOWN)
    print(f'# latency {latency} s, {shown["frames"]} frames, {shown["dropped"]} dropped')
    assert browser.run('problem.hidden') is True
