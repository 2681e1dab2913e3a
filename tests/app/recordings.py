# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings: frames and times as at the source, across files, kills and full disks.

WEIR_RECORDING_KILLS kills the proxy so many times."""

import glob
import json
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import urllib.parse
from datetime import datetime, timezone
from functools import lru_cache

from burst import Burst
from chromium import Chromium
from control import Controlled
from proc import Proc, Rtsp
from proxy import QUICK, Read, wait_for_readers, wait_until
from tap import SLOWER, Skip, run, test
from webserver import WebServer

KILLS = int(os.environ.get('WEIR_RECORDING_KILLS', '2'))
LENGTH = 40 # s


@lru_cache
def folder():
    return tempfile.TemporaryDirectory()


@lru_cache
def clip(size='160x90'):
    """Makes a clip with a keyframe each second. Returns its path."""
    if not shutil.which('ffmpeg'):
        raise Skip('no ffmpeg found')
    path = os.path.join(folder().name, f'clip-{size}.mp4')
    subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', f'testsrc2=size={size}:rate=25', '-f', 'lavfi',
                    '-i', 'sine=frequency=440:sample_rate=48000', '-t', str(LENGTH), '-c:v', 'libx264', '-preset', 'veryfast',
                    '-bf', '2', '-g', '25', '-x264-params', 'scenecut=0', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-ac',
                    '2', path], check=True)
    return path


def frames(path):
    """Returns {stream: [(time, hash)]} of the packets of a file, in the order of decoding."""
    done = subprocess.run(['ffmpeg', '-v', 'error', '-i', path, '-map', '0', '-c', 'copy', '-copyts', '-bsf:v',
                           'h264_mp4toannexb,filter_units=remove_types=6-9', '-f', 'framehash', '-hash', 'md5', '-'],
                          capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    assert done.returncode == 0 and not done.stderr, (path, done.stderr)
    found, units = {}, {}
    for line in done.stdout.splitlines():
        if unit := re.match(r'#tb (\d): (\d+)/(\d+)', line):
            units[unit[1]] = int(unit[2]) / int(unit[3])
        elif not line.startswith('#'):
            stream, _, pts, _, _, digest = (each.strip() for each in line.split(',')[:6])
            found.setdefault(stream, []).append((int(pts) * units[stream], digest))
    return found


@lru_cache
def source_frames():
    return frames(clip())


def check_frames(got, least):
    """Checks that frames are a stretch of the clip's, without a gap, at its times."""
    source, shifts = source_frames(), []
    assert len(got) == 2, got.keys()
    for stream, pairs in got.items():
        digests = [digest for _, digest in source[stream]]
        at = digests.index(pairs[len(pairs) // 2][1]) - len(pairs) // 2
        assert len(pairs) >= least, (stream, len(pairs))
        assert [digest for _, digest in pairs] == digests[at:at + len(pairs)], stream
        offsets = [when - source[stream][at + i][0] for i, (when, _) in enumerate(pairs)]
        assert max(offsets) - min(offsets) < 0.001, (stream, min(offsets), max(offsets))
        shifts.append(offsets[0])
    assert max(shifts) - min(shifts) < 0.005, shifts


class Recorder(Controlled):
    """A proxy that records /cam below `self.folder`."""

    def __init__(self, where, record=None, mount=None, **mounts):
        self.folder = where
        record = {'folder': where, 'segment': '1s', 'part': '200ms', **(record or {})}
        super().__init__({'/cam': {'upstream': f'file://{clip()}', **QUICK, 'record': record, **(mount or {})},
                          **{f'/{name}': value for name, value in mounts.items()}})

    def files(self):
        return sorted(glob.glob(f'{self.folder}/cam/*.mp4'))

    def figures(self):
        return self.get('/v1/mounts/cam').get('recording', {})

    def wait_for(self, name, value):
        wait_until(lambda: self.figures().get(name, 0) >= value, 30, f'{name} of {value}')

    def list(self, **query):
        return self.get('/v1/recordings?' + urllib.parse.urlencode({'path': '/cam', **query}))


def moofs(path):
    """Returns the number of whole parts of a file, whose boxes must follow each other."""
    n = 0
    with open(path, 'rb') as file:
        data = file.read()
    while data:
        size, kind = struct.unpack('>I4s', data[:8])
        assert size <= len(data) and kind in (b'ftyp', b'moov', b'styp', b'moof', b'mdat', b'mfra'), (path, kind, size)
        n += kind == b'mdat'
        data = data[size:]
    return n


def cut(proxy, start, duration, headers=None):
    query = urllib.parse.urlencode({'path': '/cam', 'start': start, 'duration': duration})
    return proxy.http('GET', f'/v1/recordings/get?{query}', headers=headers)


def save(data):
    path = os.path.join(folder().name, 'cut.mp4')
    with open(path, 'wb') as file:
        file.write(data)
    return path


@test(timeout=120)
def files_and_stretches_have_the_frames_of_the_source():
    with tempfile.TemporaryDirectory() as where, Recorder(where, files={'upstream': f'file://{where}/', **QUICK}) as proxy:
        proxy.wait_for('written-segments', 4)
        found = proxy.list()['recordings']
        assert [one['complete'] for one in found[:4]] == [True] * 4 and found[0]['duration'] == 1, found
        assert [one['name'] for one in found] == [os.path.basename(each) for each in proxy.files()][:len(found)], found
        check_list(proxy, found)
        check_cuts(proxy, found)
        check_bad_queries(proxy, found)
        for path in proxy.files()[:2]:
            check_frames(frames(path), 25)
            check_seek(path)
            check_own_times(path)
        check_served(proxy, found[0]['name'])
        check_start(proxy, found[0]['name'])
        metrics = proxy.get('/metrics').decode()
        assert 'weir_recording_up{mount="/cam"} 1' in metrics and 'weir_recording_written_parts_total' in metrics
        recorded = proxy.files()
        proxy.stop()
        assert all(moofs(each) for each in recorded)
        with open(recorded[-1], 'rb') as file:
            assert b'mfro' in file.read()[-16:], 'the last segment ends when the proxy does'


def check_list(proxy, found):
    page = proxy.list(limit=1)
    assert page['recordings'] == found[:1] and page['next'] == found[1]['start'], page
    page = proxy.list(limit=1, **{'from': page['next']})
    assert page['recordings'] == found[1:2], page
    assert proxy.list(to=found[0]['start']) == {'recordings': []}


def check_cuts(proxy, found):
    status, headers, data = cut(proxy, found[0]['start'], '3900ms')
    assert status == 200 and headers['content-type'] == 'video/mp4', (status, headers)
    assert headers['recording-start'] == found[0]['start'] and len(data) == int(headers['content-length'])
    got = frames(save(data))
    assert len(got['0']) == 100 and got['0'][0][0] < 0.1, (len(got['0']), got['0'][0])
    check_frames(got, 100)
    for first, last in ((0, 99), (5000, 5000), (1234, 100000), (len(data) - 5000, len(data) - 1)):
        status, headers, part = cut(proxy, found[0]['start'], '3900ms', {'Range': f'bytes={first}-{last}'})
        assert status == 206 and part == data[first:last + 1], (status, first, last, len(part))
        assert headers['content-range'] == f'bytes {first}-{last}/{len(data)}', headers
    check_ranges(proxy, found[0]['start'], data)
    # From within the first file to within the second: keyframe to the end of a part.
    middle = seconds(found[0]['start']) + 0.5
    start = datetime.fromtimestamp(middle, timezone.utc).isoformat()
    got = frames(save(cut(proxy, start, '1s')[2]))
    assert 35 <= len(got['0']) <= 45, len(got['0'])
    check_frames(got, 35)


def check_ranges(proxy, start, data):
    """Ranges beyond the end, and those that are none."""
    size = len(data)
    for text, status, part in (
            (f'bytes={size - 7}-{10 ** 11}', 206, data[-7:]), ('bytes=-7', 206, data[-7:]), ('bytes=-99999999999', 206, data),
            (f'bytes={size}-', 416, None), (f'bytes= {size}-', 416, None), ('bytes=-0', 416, None),
            (f'bytes={2 ** 63 - 1}-', 416, None), ('bytes=7-5', 200, data), ('bytes=0-1,5-9', 200, data), ('bytes=', 200, data)):
        got = cut(proxy, start, '3900ms', {'Range': text})
        assert got[0] == status and part in (None, got[2]), (text, got[:2])


def check_bad_queries(proxy, found):
    start = found[0]['start']
    for query, status, where in (
            ('', 400, 'path'), ('?path=', 400, 'path'), ('?path=/other', 404, 'path'), ('?path=/../cam', 404, 'path'),
            ('?path=/cam&from=yesterday', 400, 'from'), ('?path=/cam&limit=0', 400, 'limit'),
            ('?path=/cam&limit=1001', 400, 'limit'), ('?path=/cam&page=2', 400, 'query'),
            ('/get?path=/cam', 400, 'start'), (f'/get?path=/cam&start={start}', 400, 'duration'),
            (f'/get?path=/cam&start={start}&duration=0s', 400, 'duration'),
            (f'/get?path=/cam&start={start}&duration=25h', 400, 'duration'),
            ('/get?path=/cam&start=2026-13-01T00:00:00Z&duration=1s', 400, 'start'),
            ('/get?path=/cam&start=1999-01-01T00:00:00Z&duration=1s', 404, None)):
        got = proxy.http('GET', f'/v1/recordings{query}')
        assert got[0] == status and got[2]['error'].get('where') == where, (query, got)
    assert proxy.http('POST', '/v1/recordings', {})[0] == 405


def check_seek(path):
    times = subprocess.run(['ffprobe', '-v', 'error', '-read_intervals', '0.5%+#1', '-select_streams', 'v', '-show_entries',
                            'packet=pts_time', '-of', 'csv=p=0', path], capture_output=True, text=True, check=True).stdout
    assert times.strip(), path


def check_own_times(path):
    """Checks that a file of 1 s begins at 0 and says when that was. Pictures begin later by the time that they are reordered."""
    done = subprocess.run(['ffprobe', '-v', 'error', '-show_entries', 'format=start_time,duration:format_tags=creation_time:stream=duration', '-of',
                           'json', path], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert 0 <= float(told['format']['start_time']) < 0.15 and 1 <= float(told['format']['duration']) < 1.15, told
    assert all(0.9 < float(each['duration']) < 1.1 for each in told['streams']), told
    name = datetime.strptime(os.path.basename(path)[:19], '%Y-%m-%dT%H-%M-%S').timestamp()
    created = datetime.strptime(told['format']['tags']['creation_time'][:19], '%Y-%m-%dT%H:%M:%S').timestamp()
    assert name - 1 <= created <= name, told
    with open(path, 'rb') as file:
        data = file.read()
    assert data.index(b'mvhd') < 100 and 1000 <= struct.unpack('>I', data[data.index(b'mvhd') + 20:][:4])[0] < 1150


def check_served(proxy, name):
    """The folder of recordings is one of titles."""
    url = f'rtsp://127.0.0.1:{proxy.port}/files/cam/{name}'
    for seek, least in ([], 20), (['-ss', '0.5'], 8):
        done = subprocess.run(['ffmpeg', '-v', 'error', '-rtsp_transport', 'tcp', '-analyzeduration', '200000', *seek, '-i', url, '-map', '0:v',
                               '-frames:v', str(least), '-f', 'framehash', '-'], capture_output=True, text=True, timeout=30 * SLOWER, check=False)
        n = sum(not line.startswith('#') for line in done.stdout.splitlines())
        assert n == least, (seek, n, done.stderr)


def check_start(proxy, name):
    """A PLAY from 0 plays pictures and sound at once, and the title has its own length."""
    url = f'rtsp://127.0.0.1:{proxy.port}/files/cam/{name}'
    with Rtsp(proxy.port) as rtsp:
        status, _, sdp = rtsp.request('DESCRIBE', url)
        stated = re.search(rb'a=range:npt=([\d.]+)-([\d.]+)\r', sdp)
        assert status == 200 and float(stated[1]) < 0.15 and 1 <= float(stated[2]) < 1.15, sdp
        for n in 0, 1:
            transport = f'RTP/AVP/TCP;unicast;interleaved={2 * n}-{2 * n + 1}'
            assert rtsp.request('SETUP', f'{url}/stream={n}', {'Transport': transport})[0] == 200
        assert rtsp.request('PLAY', url, {'Range': 'npt=0-'})[0] == 200
        channels = [rtsp.frame()[0] for _ in range(30)]
        assert channels.count(0) > 5 and channels.count(2) > 5, channels


@test(timeout=120)
def a_browser_plays_a_file_from_its_beginning():
    with tempfile.TemporaryDirectory() as where:
        with Recorder(where, {'segment': '2s'}) as proxy:
            proxy.wait_for('written-segments', 3)
            path = proxy.files()[2]
        with Chromium('--allow-file-access-from-files') as browser:
            browser.open('file://' + path)
            browser.wait('document.querySelector("video") && document.querySelector("video").currentTime > 0.5', 30, 'the file plays')
            length, begin = browser.run('(v => [v.duration, v.buffered.start(0)])(document.querySelector("video"))')
            assert 2 <= length < 2.15 and begin < 0.15, (length, begin)


def publish(proxy, film, least):
    """Has FFmpeg publish a film ahead of its time, with the parameter sets in the stream, until parts of it are recorded, and kills it."""
    seen, written = len(proxy.lines), proxy.figures().get('written-parts', 0)
    with Burst(proxy.port) as port, \
            Proc('ffmpeg', '-nostdin', '-v', 'error', '-i', film, '-c', 'copy', '-bsf:v', 'h264_mp4toannexb', '-f',
                 'rtsp', '-rtsp_transport', 'tcp', f'rtsp://127.0.0.1:{port}/cam') as sender:
        proxy.wait_for('written-parts', written + least)
        sender.kill()
    proxy.wait_for_line(' mount /cam waits for a publisher: publish: the publisher has left', 30, start=seen)


@test(timeout=120)
def a_publisher_may_die_and_come_back():
    """stretches go on behind the gap, at their time, and end where the picture has another size"""
    with tempfile.TemporaryDirectory() as where, \
            Recorder(where, mount={'upstream': 'publish', 'read-timeout': '20s'}) as proxy:
        for film, least in (clip(), 6), (clip(), 6), (clip('320x180'), 6), (clip(), 12):
            publish(proxy, film, least)
        wait_until(lambda: proxy.figures()['state'] == 'waiting', 10, 'the recording waits')
        wait_until(lambda: all(one['complete'] for one in proxy.list()['recordings']), 10, 'all files are complete')
        found = proxy.list()['recordings']
        sizes, start = [], found[0]['start']
        for one, after in zip(found, found[1:]):
            assert seconds(one['start']) + one['duration'] < seconds(after['start']) + 0.005, (one, after)
        while start:
            status, headers, data = cut(proxy, start, '1h')
            assert status == 200 and headers['recording-start'] == start, (status, headers)
            start, begin = headers.get('recording-next'), start
            within = [one for one in found if one['start'] >= begin and (not start or one['start'] < start)]
            sizes.append(check_joined(proxy, save(data), within))
    assert sizes == ['160x90', '320x180', '160x90'], sizes


def check_joined(proxy, path, segments):
    """Checks that a stretch plays, and has the frames of these segments at their times, and perhaps
    more. Returns the size of its picture."""
    done = subprocess.run(['ffmpeg', '-v', 'error', '-xerror', '-i', path, '-vsync', 'passthrough', '-enc_time_base:v', '-1', '-f',
                           'null', '-'], capture_output=True, text=True, timeout=60 * SLOWER, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    got = frames(path)
    assert set(got) == {'0', '1'}, got.keys()
    places = {'0': 0, '1': 0}
    for one in segments:
        shifts = []
        for stream, pairs in frames(os.path.join(proxy.folder, 'cam', one['name'])).items():
            place, places[stream] = places[stream], places[stream] + len(pairs)
            part = got[stream][place:places[stream]]
            assert [digest for _, digest in part] == [digest for _, digest in pairs], (one, stream)
            shifts += [(after - before, stream, before) for (after, _), (before, _) in zip(part, pairs)]
            if stream == '0':
                at = part[0][0] - got['0'][0][0], seconds(one['start']) - seconds(segments[0]['start'])
                assert abs(at[0] - at[1]) < 2.1, (one, at)
        assert max(shifts)[0] - min(shifts)[0] < 0.002, (one, min(shifts), max(shifts))
    return subprocess.run(['ffprobe', '-v', 'error', '-select_streams', 'v', '-show_entries', 'stream=width,height', '-of',
                           'csv=p=0:s=x', path], capture_output=True, text=True, check=True).stdout.strip()


@test(timeout=120)
def only_tracks_that_cannot_be_carried_are_left_out():
    line = ('launch: videotestsrc is-live=true ! video/x-raw,width=160,height=120,framerate=25/1 ! openh264enc '
            'gop-size=25 ! h264parse ! rtph264pay name=pay0 audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 '
            '! mulawenc ! rtppcmupay name=pay1')
    if subprocess.run(['gst-inspect-1.0', 'openh264enc'], capture_output=True, check=False).returncode:
        raise Skip('no openh264enc')
    with tempfile.TemporaryDirectory() as where, Recorder(where, mount={'upstream': line}) as proxy:
        proxy.wait_for_line(r'record /cam: left out: track 1: a recording cannot carry PCMU$')
        proxy.wait_for('written-parts', 3)
        figures = proxy.figures()
        assert figures['left-out'] == 'track 1: a recording cannot carry PCMU' and figures['state'] == 'recording', figures


def seconds(text):
    return datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


@test(timeout=7200 if KILLS > 10 else 120)
def a_kill_costs_no_part_that_was_written():
    seed = int(os.environ.get('WEIR_SEED', random.randrange(1 << 30)))
    print(f'# WEIR_SEED={seed}')
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as where:
        written = 0
        for _ in range(KILLS):
            with Recorder(where) as proxy:
                proxy.wait_for('written-parts', chance.randrange(1, 12))
                written += proxy.figures()['written-parts']
                proxy.kill()
        with open(os.path.join(where, 'cam', '2026-01-01T00-00-00.000000Z.mp4'), 'wb') as file:
            file.write(b'this is another file with such a name')
        with Recorder(where) as proxy:
            proxy.wait_for_line('2026-01-01T00-00-00.000000Z.mp4 is damaged or no recording; it stays')
            proxy.wait_for('written-parts', 1)
            found = [each for each in proxy.list()['recordings'] if each['complete']]
            files = [os.path.join(where, 'cam', each['name']) for each in found]
            assert len(files) >= KILLS and sum(map(moofs, files)) >= written, (len(files), written)
            for path in files:
                check_frames(frames(path), 1)


@test(timeout=120)
def a_full_disk_is_not_noticed_by_readers():
    with tempfile.TemporaryDirectory() as where, Recorder(where, {'segment': '1h'}) as proxy:
        proxy.wait_for('written-parts', 2)
        with Read(proxy.url(), duration=60) as reader:
            wait_for_readers(proxy, 1)
            _, hard = resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE, (1000, hard))
            proxy.wait_for_line(r'record /cam failed: .*File too large; trying again')
            wait_until(lambda: proxy.figures()['state'] == 'failing', 10, 'the state')
            figures = proxy.figures()
            assert 'File too large' in figures['problem'], figures
            proxy.wait_for('dropped-parts', figures['dropped-parts'] + 3)
            assert 'weir_recording_up{mount="/cam"} 0' in proxy.get('/metrics').decode()
            resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE, (hard, hard))
            proxy.wait_for_line(r'record /cam goes on after \d+ failures')
            total = reader.finish(status=None)['totals']
            assert total['statuses'] == {'ok': 1} and total['lost'] == 0 and total['jumps'] == 0, total
        lines = [line for line in proxy.lines if 'record /cam failed' in line]
        assert len(lines) == 1, lines
        assert proxy.figures()['state'] == 'recording' and 'problem' not in proxy.figures()
        found = [os.path.join(where, 'cam', each['name']) for each in proxy.list()['recordings']]
        assert len(found) >= 2, found
        for path in found[:1]:
            check_frames(frames(path), 5)


@test(timeout=120)
def a_command_and_a_url_are_told_when_a_file_is_complete():
    answers = iter([(500, '')])
    with tempfile.TemporaryDirectory() as where, WebServer(lambda *_: next(answers, (200, ''))) as server:
        script, said = os.path.join(where, 'hook'), os.path.join(where, 'said')
        with open(script, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\necho "$1 $WEIR_MOUNT $WEIR_FILE $WEIR_START $WEIR_DURATION $WEIR_BYTES" >>{said}\n')
        os.chmod(script, 0o755)
        other = {'folder': where, 'segment': '1s', 'part': '200ms', 'hook': f'{server.base}/complete'}
        with Recorder(where, {'segment': '1s', 'hook': f'{script} "two words"'},
                      other={'upstream': f'file://{clip()}', **QUICK, 'record': other}) as proxy:
            proxy.wait_for('hooks', 1)
            first = proxy.list()['recordings'][0]
            with open(said, encoding='utf-8') as file:
                line = file.readline().rstrip()
            assert line == (f'two words /cam {where}/cam/{first["name"]} {first["start"]} '
                            f'{first["duration"]:.3f} {first["bytes"]}'), line
            check_url(proxy, server, where)
            proxy.stop()
            with open(said, encoding='utf-8') as file:
                assert len(file.readlines()) == len(proxy.files()), 'the hook of the last file runs, too'


def check_url(proxy, server, where):
    """The first request, which the server refuses, is not repeated."""
    wait_until(lambda: proxy.get('/v1/mounts/other')['recording']['hooks'] >= 2, 30, 'two requests')
    assert proxy.get('/v1/mounts/other')['recording']['failed-hooks'] == 1
    proxy.wait_for_line('record /other: the hook failed: the server answered 500')
    told = [(path, body['mount'], body['file'], body['start'], body['duration'], body['bytes']) for path, body in server.requests]
    assert told[:2] == [
        ('/complete', '/other', f'{where}/other/{one["name"]}', one['start'], one['duration'], one['bytes'])
        for one in proxy.list(path='/other')['recordings'][:2]], told


@test
def wrong_keys_are_refused():
    with tempfile.TemporaryDirectory() as where, Recorder(where) as proxy:
        for record, wrong in (
                ({}, 'the folder is missing'),
                ({'folder': '.'}, 'must begin with a slash'), ({'folder': where, 'segment': '1ms'}, 'segment'),
                ({'folder': where, 'segment': '2s', 'part': '3s'}, 'a part cannot be longer than a segment'),
                ({'folder': where, 'keep': '-1d'}, 'expected a time such as 7d'),
                ({'folder': where, 'limit': '1M'}, 'a size of at least 16M'),
                ({'folder': where, 'hook': 'rm -r "x'}, 'not a command'),
                ({'folder': where, 'hook': 'rm -r x'}, 'the path of a program'),
                ({'folder': where, 'colour': 'red'}, 'colour'), ('yes', 'expected {KEY: VALUE')):
            text = json.dumps({'listen': '127.0.0.1:0', 'mounts': {'/cam': {'upstream': f'file://{clip()}', 'record': record}}})
            said = proxy.hang_up(text)
            assert said.startswith('not reloaded') and any(wrong in line for line in proxy.lines), (record, said)
        status, _, body = proxy.http('PATCH', '/v1/mounts/cam', {'record': {'folder': where}})
        assert status == 400 and 'configuration file only' in body['error']['message'], body


if __name__ == '__main__':
    run()
