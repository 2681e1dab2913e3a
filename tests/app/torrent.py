# SPDX-License-Identifier: LGPL-2.1-or-later
"""weir-store torrent writes .torrent files that libtorrent takes."""

import hashlib
import os
import re
import signal
import subprocess
import tempfile

from blockstores import call, fails, program, some_bytes, store, told
from stockpeers import describe
from tap import run, test

TRACKERS = 'http://127.0.0.1:6969/announce', 'udp://127.0.0.1:6969'


def hashes(data, piece):
    return [hashlib.sha1(data[i:i + piece]).hexdigest() for i in range(0, len(data), piece)]


def file(top, name, data):
    path = os.path.join(top, name)
    with open(path, 'wb') as out:
        out.write(data)
    return path


@test
def a_title_becomes_a_torrent():
    """libtorrent reads the title's name, size and hashes, its origin and its trackers in order"""
    data = some_bytes(1234567)
    with store() as st:
        st.add('films/a b.mp4', data)
        path = os.path.join(st.top, 'x.torrent')
        told_ = told('torrent', st.dir, 'films/a b.mp4', '-o', path, '--private',
                     '--origin', 'http://127.0.0.1:80/all/', '--tracker', TRACKERS[0],
                     '--tracker', TRACKERS[1])
        found = describe(path)
        assert found == {'name': 'a b.mp4', 'bytes': len(data), 'files': 1, 'piece-length': 16384,
                         'pieces': 76, 'hashes': hashes(data, 16384), 'private': True,
                         'info-hash': told_['info-hash'], 'trackers': [[TRACKERS[0], 0],
                                                                       [TRACKERS[1], 1]],
                         'seeds': ['http://127.0.0.1:80/all/films/a%20b.mp4']}, found
        assert told_ == {'file': path, 'name': 'a b.mp4', 'info-hash': found['info-hash'],
                         'bytes': len(data), 'piece-length': 16384, 'pieces': 76, 'private': True,
                         'origin': found['seeds'][0], 'trackers': list(TRACKERS)}, told_


@test
def a_lost_copy_is_made_up_for():
    """the hashes are those of the title when a copy of a block is lost"""
    data = some_bytes(400000)
    with store() as st:
        st.add('a', data)
        os.remove(st.path('a', 1, 0))
        path = os.path.join(st.top, 'a.torrent')
        call('torrent', st.dir, 'a', '-o', path)
        assert describe(path)['hashes'] == hashes(data, 16384)


@test
def a_file_becomes_a_torrent():
    """a plain file has the same torrent as a title with its bytes, by default in this folder"""
    data = some_bytes(3 << 20)
    with tempfile.TemporaryDirectory() as top, store() as st:
        path = file(top, 'film.mp4', data)
        out, err = call('torrent', path, '--piece', '512K', cwd=top)
        found = describe(path + '.torrent')
        assert out == ('wrote film.mp4.torrent: 3.1 MB in 6 pieces of 512 KiB, info hash '
                       f'{found["info-hash"]}\n') and not err, (out, err)
        assert found['hashes'] == hashes(data, 512 << 10), found
        assert not found['private'] and not found['trackers'] and not found['seeds'], found
        st.add('dir/film.mp4', data)
        other = os.path.join(top, 'other')
        call('torrent', st.dir, 'dir/film.mp4', '-o', other, '--piece', '512K')
        with open(other, 'rb') as ours, open(path + '.torrent', 'rb') as theirs:
            assert ours.read() == theirs.read()
        call('torrent', path, '-o', other, '--name', 'ä.mp4', '--origin', 'https://h/x?y=1')
        found = describe(other)
        assert (found['name'], found['seeds']) == ('ä.mp4', ['https://h/x?y=1']), found


@test
def pieces_fit_the_size():
    """there are 1024 to 2047 pieces, as far as a piece has 16 KiB to 16 MiB"""
    with tempfile.TemporaryDirectory() as top:
        path = os.path.join(top, 'sparse')
        for size, piece in ((1, 16), (1 << 24, 16), ((1 << 25) - 1, 16), (1 << 25, 32),
                            (100000000, 64)):
            with open(path, 'wb') as out:
                out.truncate(size)
            assert told('torrent', path, '-o', path + '.torrent')['piece-length'] == piece << 10


@test
def wrong_arguments_are_refused():
    """what is wrong is named, and no file is written"""
    with tempfile.TemporaryDirectory() as top, store() as st:
        path = file(top, 'film.mp4', b'x' * 100000)
        out = os.path.join(top, 'out.torrent')
        for more, line in ((('--piece', '15K'), "from 16K to 16M, such as 512K, not '15K'"),
                           (('--piece', '24K'), "not '24K'"), (('--piece', '32M'), "not '32M'"),
                           (('--piece', '65536'), "not '65536'"), (('--piece', '-1M'), "not '-1M'"),
                           (('--piece', '18014398509481984K'), 'a power of two'),
                           (('--origin', 'ftp://h/x'), "--origin must be a URL"),
                           (('--origin', 'film.mp4'), "not 'film.mp4'"),
                           (('--tracker', 'http:///x'), "--tracker must be a URL"),
                           (('--name', '../x'), "--name must be a file name, not '../x'")):
            fails('torrent', path, '-o', out, *more, line=line, status=2)
        for words, line in (((top,), 'a folder; name a title of the store, too'),
                            ((os.path.join(top, 'none'),), 'No such file'),
                            (('/dev/null',), 'not a file'),
                            ((file(top, 'empty', b''),), 'the file is empty'),
                            ((st.dir, 'none'), 'none'), ((top, 'film.mp4'), 'store.yaml')):
            fails('torrent', *words, '-o', out, line=line)
        fails('torrent', path, '-o', os.path.join(top, 'no/folder'), line='No such file')
        with open(os.path.join(top, 'huge'), 'wb') as huge:
            huge.truncate(5 << 30)
        fails('torrent', huge.name, '--piece', '16K', '-o', out,
              line='huge: 327680 pieces are more than the 262144 that clients take; give a longer')
        assert not os.path.exists(out)


@test
def an_interrupt_leaves_nothing():
    """SIGINT ends it with status 130, with no file and the former one unchanged"""
    with tempfile.TemporaryDirectory() as top:
        path = os.path.join(top, 'sparse')
        with open(path, 'wb') as out:
            out.truncate(200 << 30)
        before = file(top, 'sparse.torrent', b'before')
        child = subprocess.Popen([program(), 'torrent', path, '-o', before], text=True,
                                 stderr=subprocess.PIPE)
        # The first line of progress shows that it reads.
        assert re.match(r'sparse: \d+ %', child.stderr.readline())
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 130 and child.stderr.read().endswith('interrupted\n')
        with open(before, 'rb') as left:
            assert left.read() == b'before'
        assert sorted(os.listdir(top)) == ['sparse', 'sparse.torrent']


run()
