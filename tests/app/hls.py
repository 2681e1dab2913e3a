# SPDX-License-Identifier: LGPL-2.1-or-later
"""HLS and Low-Latency HLS: frames and times as at the source, playlists by the rules, requests that
wait, who may read, and the page in a browser."""

import hashlib
import http.client
import itertools
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from datetime import datetime

from chromium import Chromium
from hlsweb import Web, check_live, check_page, check_times, clip, frames, variants
from proc import Proc
from proxy import wait_until
from tap import SLOWER, Skip, run, test

PASSWORD = 'S3cr3tCanary'


# ---- frames ----

def check_clip(video, audio, name='plain.m3u8'):
    path = clip(video, audio)
    with Web(f'file://{path}') as proxy:
        got = frames(f'{proxy.web}/hls/cam/{name}', '-frames:v', '100', '-frames:a', '180')
        assert len(got) == 2, got.keys()
        check_times(got, frames(path), 60)


@test(timeout=120)
def ffmpeg_gets_the_frames_of_h264_and_aac():
    check_clip('h264', 'aac')


@test(timeout=120)
def ffmpeg_gets_the_frames_of_reordered_h264():
    check_clip('h264-reordered', 'aac', 'index.m3u8')


@test(timeout=120)
def ffmpeg_gets_the_frames_of_h265_and_opus():
    check_clip('h265', 'opus')


@test(timeout=120)
def ffmpeg_gets_the_frames_of_vp9_and_opus():
    check_clip('vp9', 'opus')


# ---- playlists ----

@test(timeout=60)
def playlists_keep_the_rules():
    with Web() as proxy:
        folder, name = proxy.begin()
        assert name == 'live.m3u8'
        kept = set()
        text = proxy.playlist(folder)
        assert text.count('#EXT-X-GAP') == 6, text
        for _ in range(45):
            kept.add(check_live(text))
            last = int(re.findall(r'^seg(\d+)\.mp4', text, re.M)[-1])
            open_parts = len(re.findall('#EXT-X-PART:', text.rsplit('seg', 1)[1]))
            text = proxy.playlist(folder, query=f'?_HLS_msn={last + 1}&_HLS_part={open_parts}')
        assert len(kept) == 1, kept
        assert '#EXT-X-GAP' not in text and text.count('#EXTINF') == 7, text
        delta = proxy.playlist(folder, query='?_HLS_skip=YES')
        skipped = int(re.search(r'#EXT-X-SKIP:SKIPPED-SEGMENTS=(\d+)', delta)[1])
        assert skipped + delta.count('#EXTINF') == 7, delta


@test(timeout=60)
def a_parser_of_others_reads_the_playlists():
    script = ('import m3u8, sys; p = m3u8.load(sys.argv[1]); q = m3u8.load(p.playlists[0].absolute_uri); '
              'print(p.playlists[0].stream_info.codecs, p.playlists[0].stream_info.resolution, len(q.segments), '
              'q.target_duration, q.segment_map is not None)')
    pythons = [each for each in ('python3', '/usr/bin/python3')
               if subprocess.run([each, '-c', 'import m3u8'], capture_output=True, check=False).returncode == 0]
    if not pythons:
        raise Skip('no module m3u8 found')
    with Web() as proxy:
        proxy.begin()
        said = subprocess.run([pythons[0], '-c', script, f'{proxy.web}/hls/cam/index.m3u8'], check=True,
                              capture_output=True, text=True, timeout=30 * SLOWER).stdout.split()
    assert re.fullmatch(r'avc1\.[0-9a-f]{6},mp4a\.40\.2', said[0]), said
    assert said[1:3] == ['(320,', '180)'] and int(said[3]) >= 7 and said[4:] in (['1', 'True'], ['1.0', 'True']), said


# ---- renditions ----

RENDITIONS = {'choices': {'transcode': ['size', 'rate', 'keys']},
              'renditions': ['size=160x90&rate=300k&keys=1s', 'size=128x72&rate=200k&keys=2s']}


class Varied(Web):
    """A proxy whose /cam has renditions, all of which run: a busy machine may start encoders late."""

    def __init__(self):
        super().__init__(f'file://{clip("h264-reordered")}', RENDITIONS)
        wait_until(lambda: len(variants(self)) == 3, 30, 'all renditions run')


def epoch(proxy, folder):
    """Returns the date of the timestamp 0 of a variant, by its newest segment."""
    text = proxy.playlist(folder)
    date, name = re.findall(r'DATE-TIME:(.*)\n(?:#EXT-X-PART:.*\n)*#EXTINF.*\n(seg\d+\.mp4)', text)[-1]
    with tempfile.NamedTemporaryFile(suffix='.mp4') as file:
        for each in re.search('MAP:URI="(.*?)"', text)[1], name:
            file.write(proxy.fetch(f'{folder}/{each}')[2])
        file.flush()
        said = subprocess.run(['ffprobe', '-v', 'error', '-select_streams', 'v', '-show_entries', 'packet=pts_time', '-of',
                               'csv=p=0', file.name], capture_output=True, text=True, timeout=30 * SLOWER, check=True).stdout
    first = float(said.split()[0].strip(','))
    return datetime.fromisoformat(date.replace('Z', '+00:00')).timestamp() - first


@test(timeout=90)
def a_master_playlist_lists_the_renditions():
    with Varied() as proxy:
        listed = variants(proxy)
        assert [each['RESOLUTION'] for each, _ in listed] == ['320x180', '160x90', '128x72'], listed
        rates = [int(each['BANDWIDTH']) for each, _ in listed]
        # Peaks, so they differ from one start to another. The encoders get 300k and 200k; sound comes on top.
        assert min(rates) > 100000 and max(rates[1:]) < 600000, rates
        for each, _ in listed:
            assert re.fullmatch(r'"avc1\.[0-9a-f]{6},mp4a\.40\.2"', each['CODECS']), each
            assert each['FRAME-RATE'] == '25.000' and int(each['AVERAGE-BANDWIDTH']) <= int(each['BANDWIDTH']), each
        texts = [proxy.playlist('/hls/cam/' + uri.rsplit('/', 1)[0]) for _, uri in listed]
        assert len({check_live(text)[0] for text in texts}) == 1, 'one target duration'
        assert len(set(re.findall(r'DISCONTINUITY-SEQUENCE:\d+', ''.join(texts)))) == 1, texts
        folder = '/hls/cam/' + listed[1][1].rsplit('/', 2)[0]
        epochs = [epoch(proxy, f'{folder}/{n}') for n in range(3)]
        assert max(epochs) - min(epochs) < 0.005, epochs
        for uri, msn, part in re.findall(r'REPORT:URI="\.\./(.*?)",LAST-MSN=(\d+),LAST-PART=(\d+)\n', texts[1]):
            query = f'?_HLS_msn={msn}&_HLS_part={part}'
            assert f'seg{int(msn) - 1}.mp4' in proxy.fetch(f'{folder}/{uri}{query}')[2].decode(), (uri, msn, part)
        assert re.findall(r'REPORT:URI="\.\./(\d)/live.m3u8"', texts[1]) == ['0', '2'], texts[1]
        assert [uri.rsplit('/', 2)[1:] for _, uri in variants(proxy, 'plain.m3u8')] == [
            [str(n), 'segments.m3u8'] for n in range(3)]
        assert proxy.fetch(f'{folder}/3/live.m3u8')[0] == 404


def likeness(path):
    """Returns how like the pictures were that FFmpeg has compared so far, in dB."""
    with open(path, encoding='ascii') as file:
        return [float(each) for each in re.findall(r'psnr_avg:([\d.]+) ', file.read())]


@test(timeout=90)
def renditions_show_the_same_picture_at_the_same_time():
    with Varied() as proxy, tempfile.TemporaryDirectory() as folder:
        small, smallest = (f'{folder}/{n}' for n in range(2))
        # A rendition whose encoder began late has no picture for the first ones of the others.
        with Proc('ffmpeg', '-nostdin', '-v', 'error', '-i', f'{proxy.web}/hls/cam/plain.m3u8', '-filter_complex',
                  '[0:v:0]split[a][b];[a]scale=160:90[c];[b]scale=128:72[d];'
                  f'[c][0:v:1]psnr=f={small}:eof_action=endall[e];[d][0:v:2]psnr=f={smallest}:eof_action=endall[f]', '-map', '[e]', '-f', 'null', '-', '-map', '[f]', '-f', 'null', '-'):
            for path in small, smallest:
                wait_until(lambda path=path: os.path.exists(path) and len(likeness(path)) > 40, 25,
                           'FFmpeg compares 40 pictures')
        for path in small, smallest:
            found = sorted(likeness(path))
            print(f'# {len(found)} pictures: {found[0]} to {found[-1]} dB')
            # One frame apart, they are 22 to 26 dB like.
            assert found[len(found) // 10] > 28, found


@test(timeout=60)
def a_url_with_choices_has_one_variant():
    with Web(f'file://{clip("h264-reordered")}', {**RENDITIONS, 'renditions': []}) as proxy:
        assert len(variants(proxy)) == 1
        assert [each['RESOLUTION'] for each, _ in variants(proxy, 'index.m3u8?size=128x72')] == ['128x72']


@test
def wrong_renditions_are_refused():
    base = {'upstream': 'rtsp://127.0.0.1:9/x', **RENDITIONS}
    cases = [('x', 'expected a list of queries'), (['bitrate=3'], 'renditions: bitrate=3: '),
             (['size=160x90', 'size=160x90'], 'is the same as'), ([''], 'expected a list of queries'),
             (['size=1x1'], 'renditions: size=1x1: '), ([{}], 'expected a list of queries'),
             ([f'rate={n}k' for n in range(100, 900, 100)], 'renditions: too many: at most '),
             (['layers=1'], 'renditions: layers=1: layers must be given once'),
             (['layers=0.0.0&layers=1.0.0'], 'layers must be given once'),
             (['layers=*.*.*'], 'is the same as the mount'),
             (['layers=0.0.*', 'layers=0.0.*'], 'is the same as')]
    with Web() as proxy:
        for value, why in cases:
            status, _, body = proxy.http('PUT', '/v1/mounts/other', json.dumps({**base, 'renditions': value}))
            assert status == 400 and why in str(body), (value, status, body)
        few = json.dumps({**base, 'max-presentations': 1})
        assert 'max-presentations: 2' in str(proxy.http('PUT', '/v1/mounts/other', few)[2])
        few = json.dumps({**base, 'max-presentations': 1, 'renditions': ['layers=0.0.*', 'rate=200k', 'layers=0.0.1']})
        assert proxy.http('PUT', '/v1/mounts/other', few)[0] in (200, 201)


# ---- requests that wait ----

@test(timeout=60)
def requests_wait_for_the_next_part_only():
    with Web() as proxy:
        folder, _ = proxy.begin()
        text = proxy.playlist(folder)
        hint = int(re.search(r'HINT:TYPE=PART,URI="part(\d+)\.mp4"', text)[1])
        last = int(re.findall(r'^seg(\d+)\.mp4', text, re.M)[-1])
        status, headers, body = proxy.fetch(f'{folder}/part{hint}.mp4')
        assert (status, body[4:8] in (b'moof', b'styp')) == (200, True), (status, body[:16])
        assert headers['content-type'] == 'video/mp4', headers
        got = proxy.playlist(folder, query=f'?_HLS_msn={last + 1}')
        assert f'seg{last + 1}.mp4' in got, got
        for path, wanted in ((f'part{hint + 1000}.mp4', 404), ('seg0.mp4', 404), ('init9.mp4', 404),
                             (f'live.m3u8?_HLS_msn={last + 100}', 400), ('live.m3u8?_HLS_part=1', 400),
                             ('live.m3u8?_HLS_msn=-1', 400), ('live.m3u8?_HLS_msn=x', 400), ('../live.m3u8', 404),
                             (f'part{"9" * 30}.mp4', 404), ('part.mp4', 404), ('other', 404)):
            assert proxy.fetch(f'{folder}/{path}')[0] == wanted, path


@test(timeout=60)
def parts_make_up_their_segment():
    with Web() as proxy:
        folder, _ = proxy.begin()
        text = proxy.playlist(folder)
        last = re.findall(r'((?:#EXT-X-PART:.*\n)+)#EXTINF.*\n(seg\d+\.mp4)', text)[-1]
        parts = re.findall(r'URI="(part\d+\.mp4)"', last[0])
        whole = proxy.fetch(f'{folder}/{last[1]}')[2]
        assert len(parts) == 5 and b''.join(proxy.fetch(f'{folder}/{each}')[2] for each in parts) == whole


@test(timeout=60)
def an_upstream_that_stops_ends_the_wait():
    with Web() as proxy:
        folder, _ = proxy.begin()
        last = int(re.findall(r'^seg(\d+)\.mp4', proxy.playlist(folder), re.M)[-1])
        assert proxy.http('DELETE', '/v1/mounts/cam')[0] == 200
        start = time.monotonic()
        status, _, body = proxy.fetch(f'{folder}/live.m3u8?_HLS_msn={last + 2}')
        assert status in (503, 404) and time.monotonic() - start < 10, (status, body)


@test(timeout=60)
def a_reader_that_goes_away_is_forgotten():
    with Web() as proxy:
        folder, _ = proxy.begin()
        connection = http.client.HTTPConnection('127.0.0.1', proxy.web_port, timeout=10)
        last = int(re.findall(r'^seg(\d+)\.mp4', proxy.playlist(folder), re.M)[-1])
        connection.request('GET', f'{folder}/live.m3u8?_HLS_msn={last + 2}')
        connection.close()
        readers = proxy.get('/v1/readers')['readers']
        assert [each['transport'] for each in readers] == ['HLS'], readers
        assert 'weir_readers{mount="/cam",transport="hls"} 1' in proxy.get('/metrics').decode()
        assert proxy.http('DELETE', f'/v1/readers/{readers[0]["id"]}')[0] == 200
        wait_until(lambda: not proxy.get('/v1/readers')['readers'], 10, 'the reader has left')
        assert proxy.fetch(f'{folder}/live.m3u8')[0] == 404
        proxy.wait_for_line(r' mount /cam down: no readers', 10)


@test(timeout=60)
def a_player_without_patience_gets_a_playlist_after_some_attempts():
    with Web() as proxy:
        for _ in range(30):
            try:
                if urllib.request.urlopen(f'{proxy.web}/hls/cam/index.m3u8', timeout=0.7).status == 200:
                    break
            except TimeoutError:
                pass
        else:
            raise AssertionError('each attempt began anew')


@test(timeout=60)
def a_crowd_without_patience_leaves_few_streams_behind():
    def streams():
        return [node['label'] for node in proxy.get('/v1/graph')['nodes'] if node['kind'] == 'readers']

    layers = list(itertools.islice(itertools.product(range(8), repeat=3), 100))
    with Web(mount={'max-presentations': 100}, hls={'segment': '20s'}) as proxy:  # no playlist for 20 s
        clients = [http.client.HTTPConnection('127.0.0.1', proxy.web_port) for _ in layers]
        for client, (spatial, quality, temporal) in zip(clients, layers):
            client.request('GET', f'/hls/cam/index.m3u8?layers={spatial}.{quality}.{temporal}')
        wait_until(lambda: streams() == ['100 readers'], 10, 'each client has a stream')
        for client in clients:
            client.close()
        wait_until(lambda: streams() == ['64 readers'], 5, 'the last ones remain')
        wait_until(lambda: not streams(), 12, 'nobody came back')


@test(timeout=60)
def a_player_may_wait_for_a_publisher():
    """a player that waits longer than an idle session lasts is told that the stream takes too long"""
    with Web('publish', {'start-timeout': '1s'}) as proxy:
        start = time.monotonic()
        status, _, body = proxy.fetch('/hls/cam/index.m3u8')
        assert status == 503 and b'the stream takes too long to start' in body, (status, body)
        assert time.monotonic() - start > 15, time.monotonic() - start
        assert not proxy.get('/v1/readers')['readers']


# ---- who may read ----

@test(timeout=60)
def a_reader_needs_the_permission():
    digest = ['MD5:' + hashlib.md5(f'ann:rtsp-proxy:{PASSWORD}'.encode()).hexdigest()]
    users = [{'name': 'ann', 'digest': digest, 'permissions': [{'action': 'read', 'path': '/cam'}]}]
    basic = {'Authorization': 'Basic YW5uOlMzY3IzdENhbmFyeQ=='}
    with Web(users=users, api='off', **{'basic-without-tls': 'yes'}) as proxy:
        for path in '/hls/cam/index.m3u8', '/hls/none/index.m3u8', '/watch/cam', '/':
            status, headers, _ = proxy.fetch(path)
            assert status == 401 and 'www-authenticate' in headers, (path, status)
            assert headers.get('access-control-allow-origin') == ('*' if '/hls/' in path else None), (path, headers)
            preflight = proxy.fetch(path, {'Origin': 'https://other.example', 'Access-Control-Request-Method': 'GET',
                                           'Access-Control-Request-Headers': 'authorization'}, 'OPTIONS')
            if '/hls/' in path:
                assert preflight[0] == 204 and 'Authorization' in preflight[1]['access-control-allow-headers'], preflight
                assert preflight[1]['access-control-allow-origin'] == '*' and not preflight[2], preflight
            else:
                assert preflight[0] == 405 and 'access-control-allow-origin' not in preflight[1], preflight
        assert b'/watch/cam' in proxy.fetch('/', basic)[2]
        assert proxy.fetch('/watch/cam', basic)[0] == 200
        status, _, body = proxy.fetch('/hls/cam/index.m3u8', basic)
        assert status == 200, body
        folder = '/hls/cam/' + body.decode().splitlines()[-1].rsplit('/', 1)[0]
        assert check_live(proxy.playlist(folder))
        other = folder.replace(folder.split('~')[1][:8], '00000000')
        assert proxy.fetch(f'{other}/live.m3u8')[0] == 404
        done = subprocess.run(
            ['curl', '-s', '-m', '10', '-o', '/dev/null', '-w', '%{http_code}', '--digest', '-u',
             f'ann:{PASSWORD}', f'{proxy.web}/hls/cam/index.m3u8'],
            capture_output=True, text=True, check=False)
        assert done.stdout == '200', done


@test(timeout=60)
def limits_bound_the_readers():
    with Web(mount={'max-readers': 1}) as proxy:
        proxy.begin()
        status, _, body = proxy.fetch('/hls/cam/index.m3u8')
        assert status == 503 and b'max-readers' in body, (status, body)


@test(timeout=60)
def a_session_begins_with_a_playlist_only():
    """a HEAD and a request that fails take no place, and what is not allowed is said"""
    with Web(f'file://{clip("h264-reordered")}', {**RENDITIONS, 'renditions': [], 'max-readers': 1}) as proxy:
        for _ in range(2):
            connection = http.client.HTTPConnection('127.0.0.1', proxy.web_port, timeout=60)
            connection.request('HEAD', '/hls/cam/index.m3u8')
            assert connection.getresponse().status == 200
            assert not proxy.get('/v1/readers')['readers']
            connection.close()
        for query in '?size=1x1', '?layers=9.9.9.9':
            status, _, body = proxy.fetch(f'/hls/cam/index.m3u8{query}')
            assert status == 404 and query[1:5].encode() in body, (query, status, body)
            proxy.wait_for_line(r'reader 127\.0\.0\.1:\d+ refused: /cam: .*' + query[1:5])
        proxy.begin()


# ---- what HLS cannot carry ----

@test(timeout=60)
def a_track_that_hls_cannot_carry_is_left_out():
    line = ('launch: videotestsrc is-live=true ! video/x-raw,width=160,height=120,framerate=25/1 ! openh264enc '
            'gop-size=25 ! h264parse ! rtph264pay name=pay0 audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 '
            '! mulawenc ! rtppcmupay name=pay1')
    with Web(line) as proxy:
        status, _, body = proxy.fetch('/hls/cam/index.m3u8')
        if status == 503:
            raise Skip('no openh264enc')
        assert status == 200 and b'CODECS="avc1.' in body and b',mp4a' not in body, body
        proxy.wait_for_line(r'hls /cam: left out: track 1: HLS cannot carry PCMU$')
        readers = proxy.get('/v1/readers')['readers']
        assert [each['left-out'] for each in readers] == ['track 1: HLS cannot carry PCMU'], readers


@test(timeout=60)
def a_stream_that_hls_cannot_carry_gets_415():
    with Web('launch: audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay name=pay0') as proxy:
        status, _, body = proxy.fetch('/hls/cam/index.m3u8')
        assert status == 415 and b'HLS cannot carry PCMU' in body, (status, body)
        assert not proxy.get('/v1/readers')['readers']


@test(timeout=60)
def audio_alone_is_served():
    line = 'launch: audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! opusenc ! rtpopuspay name=pay0'
    with Web(line) as proxy:
        folder, _ = proxy.begin()
        assert check_live(proxy.playlist(folder))


# ---- the browser ----

@test(timeout=120)
def ffmpeg_shows_a_stream_whose_picture_changes_its_size():
    """FFmpeg, which keeps its decoder, shows a stream of H.264 and H.265 whose picture changes its size"""
    with tempfile.TemporaryDirectory() as folder:
        for codec, convert in ('libx264', 'h264_mp4toannexb'), ('libx265', 'hevc_mp4toannexb'):
            for size in '160x90', '320x180':
                subprocess.run(['ffmpeg', '-y', '-v', 'quiet', '-f', 'lavfi', '-i', f'testsrc2=size={size}:rate=25', '-t', '40', '-c:v', codec,
                                '-preset', 'ultrafast', '-x265-params', 'log-level=none', '-g', '25', '-pix_fmt', 'yuv420p', f'{folder}/{size}.mp4'], check=True)
            with Web('publish') as proxy:
                def publish(size, proxy=proxy, convert=convert):
                    return Proc('ffmpeg', '-nostdin', '-v', 'error', '-re', '-i', f'{folder}/{size}.mp4', '-c', 'copy', '-bsf:v', convert,
                                '-f', 'rtsp', '-rtsp_transport', 'tcp', proxy.url())
                with publish('160x90') as first:
                    proxy.wait_for_line(' mount /cam up')
                    reader = Proc('ffmpeg', '-nostdin', '-v', 'info', '-i', f'{proxy.web}/hls/cam/plain.m3u8', '-map', '0:v', '-vf', 'showinfo',
                                  '-f', 'null', '-')
                    reader.wait_for_line(' n: *50 .* s:160x90 ', 60)
                    first.kill()
                with reader, publish('320x180') as second:
                    reader.wait_for_line(' s:320x180 ', 60)
                    seen = len(reader.lines)
                    wait_until(lambda reader=reader, seen=seen: sum(' s:320x180 ' in each for each in reader.lines[seen:]) > 50, 60, 'it goes on')
                    wrong = [each for each in reader.lines if re.search('rror|nvalid|concealing|corrupt|non-exist', each)]
                    assert not wrong, wrong[:5]
                    second.kill()
                    reader.kill()


@test(timeout=90)
def the_page_plays_in_a_browser():
    """the page plays in a browser, which is forgotten when it is killed"""
    with Web() as proxy:
        with Chromium() as browser:
            check_page(proxy, browser)
            # What stalls have added to the latency is taken back.
            browser.run('slack = 0.001')
            browser.wait('(slack = Math.min(slack, 0.001)) === 0', 20, 'the latency of the stream')
            assert [each['transport'] for each in proxy.get('/v1/readers')['readers']] == ['HLS']
        wait_until(lambda: not proxy.get('/v1/readers')['readers'], 30, 'the reader has left')
        proxy.wait_for_line(r' mount /cam down: no readers', 10)
        assert 'weir_http_connections 0\n' in proxy.get('/metrics').decode()


@test(timeout=120)
def a_browser_switches_between_renditions():
    with Chromium() as browser, Varied() as proxy:
        browser.open(f'{proxy.web}/watch/cam')
        browser.wait('video.currentTime > 0 && hls.levels.length == 3', 40, 'it plays')
        assert browser.run('hls.levels.map((each) => each.height)') == [72, 90, 180]
        for level, height in ((0, 72), (2, 180), (1, 90)):
            browser.run(f'hls.nextLevel = {level}')
            browser.wait(f'video.videoHeight == {height}', 30, f'pictures of {height} lines')
            at = browser.run('video.currentTime')
            browser.wait(f'video.currentTime > {at} + 1', 30, 'it goes on')
        assert browser.run('problem.hidden') is True


@test(timeout=60)
def the_page_says_what_fails():
    with Chromium() as browser, Web('launch: audiotestsrc is-live=true ! mulawenc ! rtppcmupay name=pay0') as proxy:
        browser.open(f'{proxy.web}/watch/cam')
        text = browser.wait('problem.textContent', 30, 'a problem')
        assert 'HLS cannot carry PCMU' in text, text


@test(timeout=90)
def the_page_says_that_the_stream_has_stopped():
    with Chromium() as browser, Web('publish') as proxy:
        with Proc('ffmpeg', '-nostdin', '-v', 'error', '-re', '-i', clip(), '-c', 'copy', '-f', 'rtsp', '-rtsp_transport',
                  'tcp', proxy.url()) as sender:
            proxy.wait_for_line(' publisher .* in')
            browser.open(f'{proxy.web}/watch/cam')
            browser.wait('video.currentTime > 0', 40, 'it plays')
            sender.kill()
        text = browser.wait('problem.textContent', 40, 'a problem')
        assert 'he stream has stopped' in text, text


@test(timeout=60)
def the_page_names_the_codec_that_a_browser_lacks():
    """the page names the codec that a browser lacks, with and without media source extensions, and is one reader"""
    lacking = ('const lacks = (type) => /avc1/.test(type); {} = (has => function (type) {{ return lacks(type) ? {} : '
               'has.call(this, type); }})({});')
    source = 'MediaSource.isTypeSupported'
    native = 'HTMLMediaElement.prototype.canPlayType'
    for script in (lacking.format(source, 'false', source),
                   'delete window.MediaSource; delete window.ManagedMediaSource;' + lacking.format(native, "''", native)):
        with Chromium() as browser, Web() as proxy:
            browser.call('Page.addScriptToEvaluateOnNewDocument', source=script)
            browser.open(f'{proxy.web}/watch/cam')
            text = browser.wait('problem.textContent', 40, 'a problem')
            assert text == 'This browser has no H.264.', text
            assert len(proxy.get('/v1/readers')['readers']) <= 2, proxy.get('/v1/readers')


if __name__ == '__main__':
    run(at_once=4)
