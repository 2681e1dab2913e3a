# SPDX-License-Identifier: LGPL-2.1-or-later
"""Titles of torrents over RTSP and HTTP: from nginx, from other peers, which a tracker tells of, and
to them."""

import concurrent.futures
import os
import random
import shutil
import socket
import tempfile

from films import random_film
from nginx import Nginx
from proxy import CLIP
from stockpeers import Peer
from swarm_proxy import (FILES, Folder, Swarm, fill, fill_set, several, short, short_bytes, tracked,
                         wait_until)
from tap import run, test
from title_proxy import PICTURES, TitleProxy, check_rtsp, clip, pictures


@test
def pictures_come_unchanged_over_tcp():
    """from peers and the origin, also from a position"""
    with Folder() as folder, Nginx(fill) as nginx:
        tracker, torrent = tracked(folder, '--origin', nginx.url + 'a.mp4')
        with tracker, Peer(torrent, os.path.dirname(CLIP)), Swarm(folder.name) as proxy:
            check_rtsp(proxy)


@test
def the_api_shows_where_the_bytes_came_from():
    """pictures over UDP and bytes over HTTP come unchanged from two peers and the origin"""
    with Folder() as folder, Nginx(fill) as nginx:
        tracker, torrent = tracked(folder, '--origin', nginx.url + 'a.mp4')
        with tracker, Peer(torrent, os.path.dirname(CLIP)) as one, \
                Peer(torrent, os.path.dirname(CLIP)) as two, Swarm(folder.name) as proxy:
            udp = pictures(proxy.url('/films/a.mp4'), '-rtsp_transport', 'udp')
            assert udp == pictures(CLIP)[:len(udp)] and len(udp) > PICTURES - 10, len(udp)
            assert proxy.fetch('/films/a.mp4') == (200, clip())
            assert proxy.fetch('/films/a.mp4', {'Range': 'bytes=900000-900099'}) == (
                206, clip()[900000:900100])
            wait_until(lambda: proxy.figures()['readers'] == 0)
            got = proxy.figures()
            assert got['size'] == len(clip()) and got['wrong-bytes'] == 0, got
            assert got['peer-bytes'] > 0 and got['saved-permille'] > 0, got
            assert got['peer-bytes'] + got['origin-bytes'] - got['duplicate-bytes'] >= len(clip()), got
            assert got['peer-bytes'] <= one.sent() + two.sent(), (got, one.sent(), two.sent())
            assert got['start-up-microseconds'] > 0, got
            assert got['starts'] >= 3 and got['starts-microseconds'] >= got['start-up-microseconds'], got
            assert proxy.metric('swarm_starts_total{mount="/films"}') == got['starts'], got
            assert proxy.metric('swarm_starts_microseconds_total{mount="/films"}') == got['starts-microseconds'], got
            assert proxy.metric('swarm_peer_bytes_total{mount="/films"}') == got['peer-bytes'], got
            assert proxy.metric('swarm_origin_bytes_total{mount="/films"}') == got['origin-bytes'], got


@test
def an_origin_that_is_down_is_not_noticed_if_peers_have_the_title():
    """bytes are whole while the origin is down from the second reader on"""
    with Folder() as folder, Nginx(fill) as nginx:
        tracker, torrent = tracked(folder, '--origin', nginx.url + 'a.mp4')
        with tracker, Peer(torrent, os.path.dirname(CLIP)), \
                Swarm(folder.name) as proxy:
            assert proxy.describe('/films/a.mp4') == 200
            wait_until(lambda: proxy.figures()['peer-bytes'] > 0)
            nginx.stop()
            assert proxy.fetch('/films/a.mp4') == (200, clip())


@test
def the_proxy_gives_peers_what_it_has():
    """a peer that knows the proxy only gets the title, when nobody reads it"""
    with Folder() as folder, Nginx(fill) as nginx, tempfile.TemporaryDirectory() as empty:
        torrent = folder.add('sub/b c.mp4', short(), '--origin', nginx.url + 'sub/b%20c.mp4')
        with Swarm(folder.name) as proxy:
            assert proxy.fetch('/films/sub/b%20c.mp4') == (200, short_bytes())
            with Peer(torrent, empty, f'127.0.0.1:{proxy.peer_port}') as peer:
                peer.wait_for_line(f' down {len(short_bytes())} of', timeout=20)
            with open(os.path.join(empty, 'short.mp4'), 'rb') as file:
                assert file.read() == short_bytes()
            wait_until(lambda: proxy.figures('sub/b c.mp4')['sent-bytes'] >= len(short_bytes()))


@test
def readers_share_the_pieces_of_a_title():
    """the origin sends each byte once for two readers in turn"""
    with Folder() as folder, Nginx(fill) as nginx:
        folder.add('a.mp4', short(), '--origin', nginx.url + 'short.mp4')
        with Swarm(folder.name) as proxy:
            for _ in range(2):
                assert proxy.fetch('/films/a.mp4') == (200, short_bytes())
            assert len(short_bytes()) <= proxy.figures()['origin-bytes'] < 1.1 * len(short_bytes()), proxy.figures()


@test
def another_proxy_as_the_origin_gives_pieces_at_once():
    """a title with pieces of 26 s opens, though nothing may take 5 s then, and plays from its middle"""
    film = random_film(3600, 36000000)
    with Folder() as folder, tempfile.TemporaryDirectory() as films:
        path = os.path.join(films, 'long.mp4')
        with open(path, 'wb') as file:
            file.write(film)
        with TitleProxy({'upstream': f'file://{films}/'}) as origin:
            folder.add('long.mp4', path, '--piece', '256K',
                       '--origin', f'http://127.0.0.1:{origin.web_port}/films/long.mp4')
            with Swarm(folder.name) as proxy:
                for start in 0, 20000000:
                    got = proxy.fetch('/films/long.mp4', {'Range': f'bytes={start}-{start + 9999}'})
                    assert got == (206, film[start:start + 10000]), got[0]
                assert proxy.figures('long.mp4')['origin-bytes'] >= 2 * 256 * 1024, proxy.figures('long.mp4')


@test
def the_configuration_names_the_origin():
    """a folder as the origin in place of that of the torrent, and a mount of an unchanged swarm keeps
    its pieces over a reload"""
    with Folder() as folder, Nginx(fill) as nginx:
        folder.add('short.mp4', short(), '--origin', 'http://192.0.2.1/x')
        with Swarm(folder.name, origin=nginx.url) as proxy:
            assert proxy.fetch('/films/short.mp4') == (200, short_bytes())
            before = proxy.figures('short.mp4')['origin-bytes']
            with open(proxy.file, encoding='utf-8') as file:
                text = file.read()
            assert 'reloaded: ' in proxy.hang_up(text.replace('"swarm":', '"max-readers": 9, "swarm":'))
            assert proxy.fetch('/films/short.mp4') == (200, short_bytes())
            assert proxy.figures('short.mp4')['origin-bytes'] == before, proxy.figures('short.mp4')


@test
def what_cannot_be_served_is_named_and_hinders_no_other():
    """titles without a torrent, broken torrents, and origins that fail"""
    with Folder() as folder, Nginx(fill) as nginx, tempfile.TemporaryDirectory() as outside:
        good = folder.add('a.mp4', short(), '--origin', nginx.url + 'short.mp4')
        with open(good, 'rb') as file:
            whole = file.read()
        dice = random.Random(21)
        broken = {'empty': b'', 'noise': dice.randbytes(5000), 'cut': whole[:len(whole) // 2],
                  'list': b'le', 'huge': b'd' + b'0' * (17 << 20),
                  'length': whole.replace(b'6:lengthi', b'6:lengthi-')}
        for name, data in broken.items():
            with open(os.path.join(folder.name, name + '.torrent'), 'wb') as file:
                file.write(data)
        shutil.copy(good, os.path.join(outside, 'x.torrent'))
        os.symlink(os.path.join(outside, 'x.torrent'), os.path.join(folder.name, 'link.torrent'))
        folder.add('gone', short(), '--origin', nginx.url + 'none.mp4')
        with Swarm(folder.name) as proxy:
            for name in 'none', 'link', 'sub', '..%2fa.mp4', 'a.mp4.torrent':
                assert proxy.fetch('/films/' + name)[0] == 404, name
                assert proxy.describe('/films/' + name) == 404, name
            for name in broken:
                seen = len(proxy.lines)
                assert proxy.fetch('/films/' + name)[0] == 500, name
                proxy.wait_for_line(f'a title of the swarm cannot be opened: {name}', start=seen)
            proxy.wait_for_line('noise: "noise.torrent" is no torrent')
            seen = len(proxy.lines)
            assert proxy.fetch('/films/gone')[0] == 502
            proxy.wait_for_line('title gone: .*it has no such file', start=seen)
            proxy.wait_for_line('cannot be opened: gone: ', start=seen)
            assert proxy.fetch('/films/a.mp4') == (200, short_bytes())


@test
def each_file_of_a_torrent_is_a_title():
    """two files are read at once, over one session; the API has both; other names are not found"""
    with Folder() as folder, Nginx(fill_set) as nginx:
        several(os.path.join(folder.name, 'films', 'both.torrent'), nginx.url)
        with Swarm(folder.name) as proxy, concurrent.futures.ThreadPoolExecutor() as pool:
            one = pool.submit(proxy.fetch, '/films/films/both/one.mp4')
            two = pool.submit(proxy.fetch, '/films/films/both/more/two%20films.mp4')
            assert one.result() == (200, short_bytes())
            assert two.result() == (200, clip())
            sizes = [proxy.figures(f'films/both/{name}')['size'] for name in FILES[1:]]
            assert sizes == [len(short_bytes()), len(clip())], sizes
            for name in 'none.mp4', 'set/one.mp4', 'two%20films.mp4', 'more', 'one.mp4/x':
                assert proxy.fetch('/films/films/both/' + name)[0] == 404, name
            seen = len(proxy.lines)
            assert proxy.fetch('/films/films/both')[0] == 404
            proxy.wait_for_line('films/both: the torrent has several files; "file" chooses one of '
                                '"/notes.txt", "/one.mp4", "/more/two films.mp4"', start=seen)
            assert not any('is taken' in line for line in proxy.lines), proxy.lines


@test
def names_in_a_torrent_cannot_leave_it():
    """a torrent with such a name is refused, with a line"""
    with Folder() as folder, Nginx(fill_set) as nginx:
        for name, reason in (('../one.mp4', 'leaves its folder'), ('a\nb', 'a control character'),
                             ('one.mp4', 'two files have it')):
            several(os.path.join(folder.name, 'bad.torrent'), nginx.url, ('notes.txt', 'one.mp4', name))
            with Swarm(folder.name) as proxy:
                assert proxy.fetch('/films/bad/notes.txt')[0] == 500, name
                proxy.wait_for_line(f'bad/notes.txt: the torrent has a file .* is refused: .*{reason}')


@test
def what_hinders_peers_and_the_origin_is_in_the_log():
    """a port for peers that is taken, and a web seed that is not asked"""
    with Folder() as folder, Nginx(fill) as nginx, socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        folder.add('a.mp4', short(), '--origin', nginx.url + 'short.mp4')
        folder.add('b.mp4', short(), '--name', 'b.mp4', '--origin',
                   'https://video.example/films/')
        with Swarm(folder.name, listen=f'127.0.0.1:{port}') as proxy:
            assert proxy.fetch('/films/a.mp4') == (200, short_bytes())
            proxy.wait_for_line(f'title a.mp4: peers connect at .*, as the port in .*:{port}" is taken')
            assert proxy.fetch('/films/b.mp4')[0] == 502
            proxy.wait_for_line('b.mp4: .*"https://video.example/films/short.mp4" is not asked, as its host '
                                'is a name; set "origin"')


@test
def the_api_cannot_name_swarms():
    """an API client can neither mount a folder of torrents nor change what its titles connect to"""
    with Folder() as folder:
        with Swarm(folder.name) as proxy:
            for path, body in (('/v1/mounts/new', {'upstream': f'swarm://{folder.name}/'}),
                               ('/v1/mounts/films', {'swarm': {'networks': '0.0.0.0/0'}})):
                method = 'PUT' if path.endswith('new') else 'PATCH'
                status, _, answer = proxy.http(method, path, body)
                assert status == 400 and 'configuration file only' in answer['error']['message'], answer


run()
