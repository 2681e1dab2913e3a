# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstreams that are byte streams of a server: over HTTP, HLS, SRT and RTMP.

The servers are nginx and FFmpeg's."""

import os
import re
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from clips import ffmpeg
from proc import Proc, free_port
from proxy import Proxy, Read, listens, listens_tcp, matches, wait_for_readers, wait_until
from sent import Sender, check_frames, frames, media, read_frames, sync
from tap import SLOWER, Skip, run, test
from webserver import WebServer

MODULE = '/usr/lib/nginx/modules/ngx_rtmp_module.so'
ALWAYS = {'on-demand': 'no', 'read-timeout': '3s'}
PATIENT = {'start-timeout': '20s', 'connect-timeout': '20s', 'read-timeout': '20s'}


class Nginx(Proc):
    """Serves `folder` over HTTP, and RTMP if its module is there."""

    def __init__(self, folder):
        self.port, self.rtmp_port = free_port(), free_port()
        self.has_rtmp = os.path.exists(MODULE)
        load = f'load_module {MODULE};' if self.has_rtmp else ''
        rtmp = (f'rtmp {{ server {{ listen 127.0.0.1:{self.rtmp_port}; '
                'application live { live on; } } }' if self.has_rtmp else '')
        path = os.path.join(folder, 'nginx.conf')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'{load} daemon off; master_process off; pid {folder}/pid; '
                       f'error_log stderr; events {{ }} {rtmp} http {{ access_log off; '
                       f'client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; '
                       f'fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; '
                       f'scgi_temp_path {folder}/e; types {{ '
                       'application/vnd.apple.mpegurl m3u8; video/mp2t ts; } '
                       f'server {{ listen 127.0.0.1:{self.port}; root {folder}; '
                       f'location /moved.ts {{ return 302 file://{folder}/secret.ts; }} }} }}')
        super().__init__('nginx', '-c', path, '-p', folder)
        wait_until(lambda: listens_tcp(self.port), 10, 'nginx listens')


@contextmanager
def site():
    media()
    with tempfile.TemporaryDirectory() as folder, Nginx(folder) as nginx:
        os.chmod(folder, 0o755)
        yield folder, nginx


def convert(path, *words):
    subprocess.run([ffmpeg(), '-nostdin', '-v', 'error', '-i', media()[2], '-c', 'copy', *words,
                    path], check=True, timeout=60 * SLOWER)


def wait_up(proxy, path, tracks=2):
    proxy.wait_for_line(rf' mount {path} up: .*, {tracks} tracks$', 20)


@test
def files_over_http_arrive_unchanged():
    """MPEG-TS, MP4 and Matroska from a web server arrive unchanged and in sync, in real time"""
    forms = 'ts', 'mp4', 'mkv'
    with site() as (folder, nginx):
        for form in forms:
            convert(os.path.join(folder, f'film.{form}'))
        mounts = {f'/{form}': {'upstream': f'http://127.0.0.1:{nginx.port}/film.{form}'}
                  for form in forms}
        with Proxy(mounts) as proxy:
            for form in forms:
                times = check_frames(proxy, ('video', 'audio'), path=f'/{form}')
                assert abs(sync(times)) < 5, (form, sync(times))


def make_mpeg(path, form, seconds):
    """Makes a stream of MPEG-1 or MPEG-2, as the first letter of its name says."""
    subprocess.run([ffmpeg(), '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=352x288:rate=25', '-f',
                    'lavfi', '-i', 'anoisesrc=seed=1', '-c:v', f'mpeg{os.path.basename(path)[0]}video', '-bf', '2',
                    '-g', '12', '-b:v', '1M', '-c:a', 'mp2', '-t', str(seconds),
                    *(['-an'] if 'video' in form else []), '-f', form, path], check=True, timeout=60 * SLOWER)


def check_mpeg(proxy, path, seconds):
    """Checks that a reader of the mount of this name has frames of the file, all of a stretch and in sync."""
    name = os.path.basename(path)
    original = frames(path, seconds=seconds)
    times = read_frames(proxy, f'/{name}', seconds=4)
    assert set(times) == set(original), (name, set(times))
    for kind, each in times.items():
        # FFmpeg may drop B-frames until it has the first sender report.
        each = each[12:] if kind == 'video' else each
        whole = [frame for _, frame in original[kind]]
        got = [frame for _, frame in each]
        at = [whole.index(frame) if frame in whole else None for frame in got]
        assert len(got) > 40 and at == list(range(at[0], at[0] + len(at))), (name, kind, at)
        steps = {round(float(b[0] - a[0]), 2) for a, b in zip(each, each[1:])}
        assert kind == 'audio' or steps == {0.04}, (name, steps)
    assert len(times) < 2 or abs(sync(times, original)) < 5, (name, sync(times, original))


@test
def mpeg_1_and_2_over_http_arrive_unchanged():
    """MPEG-1 and MPEG-2 program, transport and elementary streams arrive unchanged and in sync"""
    forms = {'2.mpg': 'vob', '2.ts': 'mpegts', '1.m1v': 'mpeg1video', '1.mpg': 'mpeg'}
    with site() as (folder, nginx):
        mounts = {f'/{name}': {'upstream': f'http://127.0.0.1:{nginx.port}/{name}'} for name in forms}
        for name, form in forms.items():
            make_mpeg(os.path.join(folder, name), form, 6)
        with Proxy(mounts) as proxy:
            for name in forms:
                check_mpeg(proxy, os.path.join(folder, name), 6)


class Live(WebServer):
    """Streams that FFmpeg makes in real time for each client, and that never end. `forms` is {name:
    (bytes that a client has missed, words of FFmpeg)}."""

    def __init__(self, forms):
        super().__init__(None)
        self.forms = forms
        self._server.RequestHandlerClass.do_GET = lambda request: self._give(request)

    def _give(self, request):
        missed, words = self.forms[request.path[1:]]
        request.close_connection = True # which is the end of the body, as it has no length
        request.send_response(200)
        request.end_headers()
        with subprocess.Popen([ffmpeg(), '-nostdin', '-v', 'error', '-re', *words, '-'],
                              stdout=subprocess.PIPE) as source:
            try:
                source.stdout.read(missed)
                while data := source.stdout.read1(65536):
                    request.wfile.write(data)
            finally:
                source.kill()


@test
def endless_streams_over_http_arrive_unchanged():
    """streams that come in real time, those without a header from somewhere on, arrive unchanged and in sync"""
    copy = '-i', media()[2], '-c', 'copy'
    forms = {'ts': (10007, (*copy, '-f', 'mpegts')), 'mkv': (0, (*copy, '-live', '1', '-f', 'matroska')),
             'mp4': (0, (*copy, '-movflags', 'frag_keyframe+empty_moov+default_base_moof', '-f', 'mp4'))}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(6) as pool:
        for name, form in ('1.mpg', 'mpeg'), ('2.mpg', 'vob'), ('1.m1v', 'mpeg1video'):
            path = os.path.join(folder, name)
            make_mpeg(path, form, 20)
            forms[name] = 10007 if 'video' in form else 200003, ('-i', path, '-c', 'copy', '-f', form)
        with Live(forms) as server, \
                Proxy({f'/{name}': {'upstream': f'{server.base}/{name}', **PATIENT} for name in forms}) as proxy:
            checks = [pool.submit(check_mpeg, proxy, os.path.join(folder, name), 20) for name in forms if name[0] in '12']
            for name in 'ts', 'mkv', 'mp4':
                times = check_frames(proxy, ('video', 'audio'), path=f'/{name}')
                assert abs(sync(times)) < 5, (name, sync(times))
            for check in checks:
                check.result()


@test
def a_stream_over_http_that_dies_is_read_again():
    """a live MPEG-TS that FFmpeg serves over HTTP is read again after FFmpeg died"""
    port = free_port()
    url = f'http://127.0.0.1:{port}/live.ts'
    words = ('-c', 'copy', '-f', 'mpegts', '-listen', '1', url)
    sender = Sender(*words)
    wait_until(lambda: listens_tcp(port), 10, 'FFmpeg listens')
    with Proxy({'/cam': {'upstream': url, **ALWAYS}}) as proxy:
        wait_up(proxy, '/cam')
        check_frames(proxy, ('video', 'audio'))
        sender.kill()
        proxy.wait_for_line(r' mount /cam down: ', 10)
        seen = len(proxy.lines)
        with Sender(*words):
            proxy.wait_for_line(r' mount /cam up: .*, 2 tracks$', 20, start=seen)


@test
def hls_arrives_unchanged():
    """a live HLS playlist behind nginx arrives unchanged and in sync"""
    with site() as (folder, nginx):
        words = ('-c', 'copy', '-f', 'hls', '-hls_time', '1', '-hls_flags', 'delete_segments',
                 os.path.join(folder, 'live.m3u8'))
        with Sender(*words):
            wait_until(lambda: os.path.exists(os.path.join(folder, 'live2.ts')), 10, 'segments')
            mount = {'upstream': f'http://127.0.0.1:{nginx.port}/live.m3u8', **ALWAYS}
            with Proxy({'/cam': mount}) as proxy:
                wait_up(proxy, '/cam')
                times = check_frames(proxy, ('video', 'audio'))
                assert abs(sync(times)) < 5, sync(times)


@test
def long_fragments_arrive_unchanged():
    """fragments of 5 s, each with all its video before its audio, arrive over HLS and HTTP unchanged and in sync"""
    hls = '-f', 'hls', '-hls_segment_type', 'fmp4', '-hls_time', '5', '-hls_playlist_type', 'vod'
    with site() as (folder, nginx):
        convert(os.path.join(folder, 'hls.m3u8'), *hls)
        convert(os.path.join(folder, 'film.mp4'), '-movflags', 'empty_moov', '-frag_duration', '5000000')
        mounts = {f'/{name}': {'upstream': f'http://127.0.0.1:{nginx.port}/{name}', **PATIENT}
                  for name in ('hls.m3u8', 'film.mp4')}
        with Proxy(mounts) as proxy:
            for path in mounts:
                times = check_frames(proxy, ('video', 'audio'), path=path)
                assert abs(sync(times)) < 5, (path, sync(times))


class Playlist:
    """A live playlist of the film's segments. It moves on when each segment is over; not those in
    `lost`, which never come."""

    def __init__(self, folder):
        self.folder, self.lost = folder, set()
        convert(os.path.join(folder, 'all.m3u8'), '-f', 'hls', '-hls_time', '1', '-hls_list_size', '0',
                '-hls_segment_filename', os.path.join(folder, 'of-%d.ts'))
        with open(os.path.join(folder, 'all.m3u8'), encoding='ascii') as file:
            self.durations = [float(each) for each in re.findall(r'#EXTINF:([\d.]+)', file.read())]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._move)
        self.restart()

    def restart(self):
        """Begins anew, as an encoder does that has died: with number 0 and the same names."""
        self.next = 3
        self._write()

    def _write(self):
        for number in range(self.next):
            source, name = (os.path.join(self.folder, f'{each}{number}.ts') for each in ('of-', 'live'))
            if number not in self.lost and not os.path.exists(name):
                os.link(source, name)
        first = max(0, self.next - 5)
        lines = [f'#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{first}\n']
        lines += [f'#EXTINF:{self.durations[number]},\nlive{number}.ts\n' for number in range(first, self.next)]
        path = os.path.join(self.folder, 'live.m3u8')
        with open(f'{path}.new', 'w', encoding='ascii') as file:
            file.write(''.join(lines))
        os.rename(f'{path}.new', path)

    def _move(self):
        while not self.over.wait(self.durations[self.next]):
            self.next += 1
            self._write()
            if self.next == len(self.durations):
                self.restart()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def check_goes_on(proxy, read):
    """Checks that readers get the stream unchanged and in sync again, and that the one from before stayed."""
    for left in reversed(range(5)):
        try:
            times = check_frames(proxy, ('video', 'audio'))
            break
        except AssertionError:
            if not left: # the stream may have been interrupted while they read
                raise
    assert abs(sync(times)) < 5, sync(times)
    assert [each['status'] for each in read.finish(None)['readers']] == ['ok']


@test
def hls_with_a_gap_goes_on():
    """a segment that the server does not have is a gap, after which the stream goes on in sync"""
    with site() as (folder, nginx), Playlist(folder) as playlist:
        mount = {'upstream': f'http://127.0.0.1:{nginx.port}/live.m3u8', **ALWAYS}
        with Proxy({'/cam': mount}) as proxy:
            wait_up(proxy, '/cam')
            with Read(proxy.url(), duration=100) as read:
                wait_for_readers(proxy, 1)
                playlist.lost.add(playlist.next + 1)
                nginx.wait_for_line(r'live\d+\.ts" failed', 30)
                check_goes_on(proxy, read)


@test
def hls_that_begins_anew_goes_on():
    """a playlist that begins anew at number 0, with segments of the same names, goes on in sync"""
    with site() as (folder, nginx), Playlist(folder) as playlist:
        mount = {'upstream': f'http://127.0.0.1:{nginx.port}/live.m3u8', **ALWAYS}
        with Proxy({'/cam': mount}) as proxy:
            wait_up(proxy, '/cam')
            with Read(proxy.url(), duration=100) as read:
                wait_for_readers(proxy, 1)
                playlist.restart()
                # Then what was read before is over.
                wait_until(lambda: playlist.next > 10, 30, 'ten segments')
                check_goes_on(proxy, read)


@test
def a_playlist_may_not_name_files():
    """a playlist whose segments are files of the proxy's machine, or redirect to them, fails with a reason"""
    with site() as (folder, nginx):
        convert(os.path.join(folder, 'secret.ts'), '-f', 'mpegts')
        secret = f'file://{folder}/secret.ts'
        for name, segment in ('media', secret), ('redirect', 'moved.ts'):
            with open(os.path.join(folder, f'{name}.m3u8'), 'w', encoding='ascii') as file:
                file.write(f'#EXTM3U\n#EXT-X-TARGETDURATION:60\n#EXTINF:60,\n{segment}\n#EXT-X-ENDLIST\n')
        with open(os.path.join(folder, 'master.m3u8'), 'w', encoding='ascii') as file:
            file.write('#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nmedia.m3u8\n')
        mounts = {f'/{name}': {'upstream': f'http://127.0.0.1:{nginx.port}/{name}.m3u8', **ALWAYS}
                  for name in ('media', 'master', 'redirect')}
        with Proxy(mounts) as proxy:
            for path in '/media', '/master':
                proxy.wait_for_line(rf' mount {path} down: .*names a segment that is not at an http .*{secret}', 20)
            proxy.wait_for_line(r' mount /redirect down: ', 20)
            assert not matches(proxy, ' up: '), proxy.lines


@test
def srt_arrives_unchanged():
    """MPEG-TS that FFmpeg serves over SRT arrives unchanged, and again after FFmpeg died"""
    port = free_port()
    url = f'srt://127.0.0.1:{port}'
    words = ('-c', 'copy', '-f', 'mpegts', f'{url}?mode=listener&passphrase=a-long-secret')
    media()
    sender = Sender(*words)
    wait_until(lambda: listens(port), 10, 'FFmpeg listens')
    with Proxy({'/cam': {'upstream': url, 'password': 'a-long-secret', **ALWAYS}}) as proxy:
        wait_up(proxy, '/cam')
        times = check_frames(proxy, ('video', 'audio'))
        assert abs(sync(times)) < 5, sync(times)
        sender.kill()
        proxy.wait_for_line(r' mount /cam down: ', 10)
        seen = len(proxy.lines)
        with Sender(*words):
            proxy.wait_for_line(r' mount /cam up: .*, 2 tracks$', 20, start=seen)


@test
def a_wrong_passphrase_fails_with_a_reason():
    """a wrong passphrase ends the attempt, with a reason"""
    port = free_port()
    media()
    with Sender('-c', 'copy', '-f', 'mpegts',
                f'srt://127.0.0.1:{port}?mode=listener&passphrase=a-long-secret'):
        wait_until(lambda: listens(port), 10, 'FFmpeg listens')
        mount = {'upstream': f'srt://127.0.0.1:{port}', **ALWAYS, 'connect-timeout': '3s'}
        with Proxy({'/wrong': {**mount, 'password': 'another-secret'},
                    '/short': {**mount, 'password': 'short'}}) as proxy:
            proxy.wait_for_line(r' mount /short down: .*has 10 to 79 bytes', 10)
            proxy.wait_for_line(r' mount /wrong down: .*passphrase', 20)


@test
def rtmp_arrives_unchanged():
    """H.264 and AAC from nginx over RTMP arrive unchanged and in sync"""
    with site() as (_, nginx):
        if not nginx.has_rtmp:
            raise Skip('nginx has no RTMP module')
        url = f'rtmp://127.0.0.1:{nginx.rtmp_port}/live/film'
        with Sender('-c', 'copy', '-f', 'flv', url), \
                Proxy({'/cam': {'upstream': url, **ALWAYS}}) as proxy:
            wait_up(proxy, '/cam')
            times = check_frames(proxy, ('video', 'audio'))
            assert abs(sync(times)) < 5, sync(times)


@test
def a_stream_that_is_not_there_fails_with_a_reason():
    """a stream that is not there, or is not media, fails with a reason"""
    with site() as (folder, nginx):
        with open(os.path.join(folder, 'text.ts'), 'w', encoding='ascii') as file:
            file.write('no media\n' * 1000)
        base = f'http://127.0.0.1:{nginx.port}'
        with Proxy({'/none': {'upstream': f'{base}/none.ts', **ALWAYS},
                    '/text': {'upstream': f'{base}/text.ts', **ALWAYS},
                    '/refused': {'upstream': f'http://127.0.0.1:{free_port()}/a.ts', **ALWAYS},
                    '/unknown': {'upstream': 'http://nowhere.invalid/a.ts', **ALWAYS},
                    '/tls': {'upstream': f'https://127.0.0.1:{free_port()}/a.ts', **ALWAYS},
                    '/rtmp': {'upstream': f'rtmp://127.0.0.1:{free_port()}/a/b', **ALWAYS}}) as proxy:
            proxy.wait_for_line(r' mount /none down: .*(Not Found|not found|404)', 20)
            proxy.wait_for_line(r' mount /text down: ', 20)
            for path in '/refused', '/unknown', '/tls':
                proxy.wait_for_line(rf' mount {path} down: .*: the server cannot be reached, or closed the connection', 20)
            proxy.wait_for_line(r' mount /rtmp down: ', 20)


if __name__ == '__main__':
    run()
