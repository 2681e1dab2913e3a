# SPDX-License-Identifier: LGPL-2.1-or-later
"""weir-store makes stores, adds titles to them and keeps them well."""

import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import time

from blockstores import blocks_of, call, clip, fails, files_below, in_namespace, program, some_bytes, store, told
from proxy import CLIP
from sanitized import stock_environment
from snippets import ROOT, blocks
from tap import SLOWER, run, test

COMMANDS = ('init add list show verify repair remove balance add-disk remove-disk '
            'replace-disk model torrent').split()


@test
def help_teaches_each_command():
    """the help lists the commands, and that of each command has an example of it"""
    out, _ = call('--help')
    assert re.findall(r'^  ([a-z-]+) +[A-Z]', out.split('Commands:')[1].split('Options:')[0],
                      re.M) == COMMANDS, out
    for command in COMMANDS:
        out, _ = call(command, '--help')
        assert out.startswith(f'Usage:\n  weir-store {command} '), out
        assert re.search(rf'^  weir-store {command} ', out.split('Example')[1], re.M), out
    assert call('--version')[0].startswith('weir-store ')


@test
def wrong_arguments_are_refused():
    """wrong arguments end the program with status 2 and a line that says what is wrong"""
    for words, line in (((), 'a command is missing'), (('steal',), "no command 'steal'"),
                        (('add', 'store'), 'add takes the arguments DIR FILE...'),
                        (('list', 'a', 'b'), 'list takes the arguments DIR'),
                        (('list', '--bogus', 'a'), 'list: Unknown option --bogus'),
                        (('init', 'a'), 'init needs --disks'),
                        (('init', 'a', '--disks', 'b,'), "--disks has an empty path: 'b,'"),
                        (('init', 'a', '--disks', 'b', '--policy', 'raid5'), "not 'raid5'"),
                        (('init', 'a', '--disks', 'b', '--slice', '5'), "from 100ms to 60s, not '5'"),
                        (('add', 'a', 'b', '--rate', '-1'), "--rate must be a rate such as 6M"),
                        (('repair', 'a', '--rate', 'x'), "--rate must be a rate such as 200M"),
                        (('model', '--disks', '0'), 'from 1 to 1024'),
                        (('model', '--access', '17'), "a time such as 17ms, not '17'")):
        fails(*words, line=line, status=2)


@test
def a_file_becomes_a_title():
    """both copies of a title's blocks are the file's bytes"""
    with store() as st:
        out, err = call('add', st.dir, CLIP)
        assert out == 'added bigbuckbunny.mp4: 1.1 MB in 11 blocks\n' and not err, (out, err)
        title = st.title('bigbuckbunny.mp4')
        assert title['bytes'] == len(clip()) and 5 < title['duration'] < 6, title
        assert title['rate'] == int(len(clip()) * 8 / title['duration']), title
        assert title['caps'].startswith('video/quicktime'), title
        assert st.read('bigbuckbunny.mp4', 0) == st.read('bigbuckbunny.mp4', 1) == clip()
        out, _ = call('list', st.dir)
        assert re.fullmatch(r' +0:00:05 +1\.1 MB +1\.\d Mb/s  bigbuckbunny\.mp4\n', out), out
        assert st.is_clean()['copies'] == 22


@test
def streams_are_cut_at_keyframes():
    """blocks of MPEG-TS and H.264 begin at keyframes, which have times in MPEG-TS"""
    with store() as st:
        name = st.file('a.264', b'')
        ts = name.replace('.264', '.ts')
        done = subprocess.run(['gst-launch-1.0', '-q', 'filesrc', f'location={CLIP}', '!', 'qtdemux',
                               '!', 'h264parse', 'config-interval=-1', '!', 'tee', 'name=t', '!',
                               'queue', '!', 'mpegtsmux', '!', 'filesink', f'location={ts}', 't.',
                               '!', 'queue', '!', 'video/x-h264,stream-format=byte-stream', '!',
                               'filesink', f'location={name}'], capture_output=True, timeout=50 * SLOWER,
                              env=stock_environment())
        assert done.returncode == 0, done
        with open(name, 'rb') as file:
            once = file.read()
        with open(ts, 'rb') as file:
            ts_bytes = len(file.read())
        # The clip has one keyframe, so that one repeated has one for each repetition.
        st.file('a.264', once * 4)
        rate = len(once) * 8 * 2  # a slice is the clip
        call('add', st.dir, name, '--rate', str(rate))
        starts = [block['offset'] for block in st.title('a.264')['blocks'] if block['keyframe']]
        assert starts == [len(once) * i for i in range(4)], (starts, len(once))
        assert st.read('a.264') == once * 4
        call('add', st.dir, ts)
        blocks = st.title('a.ts')['blocks']
        assert blocks[0]['keyframe'] and blocks[0]['time'] == 0, blocks
        assert all(block['offset'] % 188 == 0 for block in blocks) and len(blocks) > 5
        assert sum(block['length'] for block in blocks) == ts_bytes


@test
def folders_are_added_whole():
    """a folder's files become titles with their paths in it; what cannot be added hinders no other"""
    with store() as st:
        for name in 'films/one.mp4', 'films/deep/two.mp4', '.hidden.mp4', 'films/.x/y.mp4':
            st.file('in/' + name, clip())
        st.file('in/readme.txt', b'no film')
        st.file('in/empty.mp4', b'')
        st.file('in/' + 'x' * 220, clip())
        top = os.path.join(st.top, 'files/in')
        out, err = call('add', st.dir, top, '--json', status=1)
        assert 'readme.txt: cannot find its duration' in err and '--rate' in err, err
        assert 'empty.mp4: the file is empty\n' in err and err.count('--rate') == 1, err
        assert 'xx: ' in err and 'is not a name for a title' in err, err
        assert [each['name'] for each in told('list', st.dir)] == ['films/deep/two.mp4',
                                                                    'films/one.mp4'], out
        # Once more, only the files are added that are not there.
        st.file('in/three.mp4', clip())
        out, err = call('add', st.dir, top, status=1)
        assert out.startswith('added three.mp4') and err.count('already') == 2, (out, err)
        fails('add', st.dir, CLIP, os.path.join(top, 'three.mp4'), '--name', 'x',
              line='--name is for one file')
        fails('add', st.dir, os.path.join(top, 'films/one.mp4'),
              st.file('other/one.mp4', clip()), line="have one name, 'one.mp4'")
        fails('add', st.dir, st.file('nothing', b''), line='the file is empty')
        fails('add', st.dir, '/dev/null', line='neither a file nor a folder')


@test
def names_stay_in_the_store():
    """a name with '..', or one that is absolute, is refused, and nothing is written"""
    with store() as st:
        for name in '../../etc/passwd', 'a/../../b', '/etc/passwd', '.x', 'a//b', '':
            fails('add', st.dir, CLIP, '--name', name, line='is not a name for a title')
            fails('show', st.dir, name, line='is not a name for a title')
            fails('remove', st.dir, name, line='is not a name for a title')
        assert not st.blocks() and not files_below(os.path.join(st.dir, 'titles'))


@test
def progress_is_shown():
    """on a terminal there is a progress bar"""
    with store() as st:
        ours, theirs = pty.openpty()
        done = subprocess.run([program(), 'add', st.dir, CLIP], stdout=subprocess.DEVNULL,
                              stderr=theirs, timeout=60 * SLOWER)
        os.close(theirs)
        text = os.read(ours, 65536).decode()
        os.close(ours)
        assert done.returncode == 0
        assert re.search(r'\r\x1b\[Kbigbuckbunny\.mp4 \[#*\.*\] +\d+ %', text), text
        assert text.endswith('\r\x1b[K'), text


def damage(path, how):
    with open(path, 'r+b') as file:
        if how == 'change':
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 1]))
        else:
            file.truncate(how)


@test
def wrong_copies_are_found_and_repaired():
    """verify finds copies that are changed, cut off or gone, and repair writes them anew"""
    with store() as st:
        data = some_bytes(600000)
        st.add('films/a', data)
        damage(st.path('films/a', 0, 0), 'change')
        damage(st.path('films/a', 1, 1), 1000)
        damage(st.path('films/a', 2, 0), 0)
        os.unlink(st.path('films/a', 3, 1))
        out, _ = call('verify', st.dir, status=1)
        assert 'films/a: block 0: ' in out and out.count('the other copy is good') == 4, out
        assert '4 bad copies, 0 lost blocks' in out, out
        found = told('verify', st.dir, 'films/a', status=1)
        assert found['bad-copies'] == 4 and len(found['problems']) == 4, found
        out, _ = call('repair', st.dir)
        assert out.count('written anew\n') == 4 and '; 4 copies written anew' in out, out
        st.is_clean()
        assert st.read('films/a', 0) == st.read('films/a', 1) == data


@test
def a_block_with_two_wrong_copies_is_lost():
    """a block without a good copy is told, and the others are repaired"""
    with store() as st:
        st.add('a', some_bytes(300000))
        for copy in 0, 1:
            damage(st.path('a', 1, copy), 'change')
        damage(st.path('a', 2, 0), 'change')
        found = told('repair', st.dir, status=1)
        assert found['lost-blocks'] == 1 and found['repaired'] == 1, found
        assert sum('no good copy is left' in each['problem'] for each in found['problems']) == 2


@test
def an_index_that_is_cut_off_harms_no_other_title():
    """a title whose index is cut off, changed or newer is told, and the others stay"""
    with store() as st:
        st.add('a', some_bytes(100000))
        st.add('b', some_bytes(100000))
        index = os.path.join(st.dir, 'titles/a.index')
        with open(index, 'rb') as file:
            good = file.read()
        for data, line in ((good[:50], 'repair makes it anew'), (b'', 'is not valid'),
                           (good[:-1] + bytes([good[-1] ^ 1]), 'its hash is wrong'),
                           (good[:8] + b'\0\2' + good[10:], 'version 2 is newer')):
            with open(index, 'wb') as file:
                file.write(data)
            out, err = call('list', st.dir, status=1)
            assert out.endswith('  b\n') and 'a.index' in err and line in err, (out, err)
            newer = 'newer' in line
            found = told('repair', st.dir, status=newer)
            assert (found['bad-indexes'], found['titles']) == ((1, 1) if newer else (0, 2)), found
            assert found['restored-indexes'] == (not newer), found
        fails('remove', st.dir, 'a', line='version 2 is newer')
        with open(index, 'wb') as file:
            file.write(good)
        st.is_clean()
        os.unlink(index)
        os.mkfifo(index)
        fails('show', st.dir, 'a', line='a.index is not valid: it is not a file; repair makes')
        call('remove', st.dir, 'a')
        st.is_clean()
        assert len(st.blocks()) == 4, st.blocks()


@test
def what_is_no_store_is_refused():
    """a folder that is no store, a store of a newer version, and mistakes in store.yaml are told"""
    with store() as st:
        fails('list', st.top, line='is not a store: it has no store.yaml')
        fails('list', '/nowhere', line='/nowhere is not a store')
        path = os.path.join(st.dir, 'store.yaml')
        with open(path, encoding='utf-8') as file:
            text = file.read()
        for change, line in ((('version: 1', 'version: 7'), 'store.yaml:2:10: version 7'),
                             (('policy: rda', 'policy: raid9'), "store.yaml:4:9: policy: 'raid9'"),
                             (('disks:', 'discs:'), "store.yaml:6:1: unknown key 'discs'"),
                             (('- number: 1', '- number: 0'), 'number 0 appears twice')):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text.replace(*change))
            fails('show', st.dir, line=line)


@test
def init_refuses_what_is_no_disk():
    """a disk that is given twice or is another store's is refused; two on one device are warned of"""
    with store() as st:
        new = os.path.join(st.top, 'new')
        one, two = st.folder('one'), st.folder('two')
        fails('init', new, '--disks', f'{one},{two},{one}', line='is given twice')
        fails('init', new, '--disks', f'{one},{st.top}/two/../one', line='is given twice')
        fails('init', new, '--disks', f'{one},{st.disks[0]}', line='is a disk of a store already')
        fails('init', new, '--disks', one, line='policy rda needs two disks or more, not 1')
        fails('init', st.dir, '--disks', f'{one},{two}', line='there is a store already')
        fails('init', new, '--disks', f'{one},/nowhere,/not here', line="a disk of a store is a folder on "
              "it, and these do not exist; make them: mkdir -p /nowhere '/not here'")
        assert not os.path.exists(new) and not os.listdir(one)
        _, err = call('init', new, '--disks', f'{one},{two},{st.folder("three")}')
        assert re.fullmatch('weir-store: warning: .*/one, .*/two and .*/three are on one device.*\n',
                            err), err
        _, err = call('add-disk', new, st.folder('four'))
        assert re.fullmatch('weir-store: warning: .*/one, .*/three and .*/four are on one .*\n',
                            err), err


@test
def disks_come_and_go():
    """blocks move to a disk that is added, and away from one that is removed or dead"""
    with store() as st:
        data = [some_bytes(400000, seed) for seed in range(4)]
        for i, each in enumerate(data):
            st.add(f't{i}', each)
        st.disks.append(st.folder('disk4'))
        call('add-disk', st.dir, st.disks[4])
        fails('add-disk', st.dir, st.disks[4], line='is a disk of a store already')
        assert told('balance', st.dir)['moved'] > 0
        counts = [len(blocks_of(disk)) for disk in st.disks]
        assert max(counts) - min(counts) <= 3, counts
        st.is_clean()
        call('remove-disk', st.dir, st.disks[0])
        assert told('show', st.dir)['disks'][0]['state'] == 'being removed'
        call('balance', st.dir)
        assert [each['number'] for each in told('show', st.dir)['disks']] == [1, 2, 3, 4]
        assert not os.listdir(st.disks[0])
        shutil.rmtree(st.disks[1])
        out, _ = call('show', st.dir)
        assert f'disk   1  missing  {st.disks[1]}\n' in out, out
        out, _ = call('verify', st.dir, status=1)
        assert out.count('): missing; ') == 1, out
        call('remove-disk', st.dir, st.disks[1])
        call('balance', st.dir)
        st.is_clean()
        for i, each in enumerate(data):
            assert st.read(f't{i}', 0) == st.read(f't{i}', 1) == each
        fails('remove-disk', st.dir, '/nowhere', line='has no disk /nowhere')


@test
def a_dead_disk_is_replaced_at_its_path():
    """an empty folder at a dead disk's path is refused until balance has done without the disk"""
    with store(disks=3) as st:
        st.add('a', some_bytes(300000))
        shutil.rmtree(st.disks[1])
        os.mkdir(st.disks[1])
        fails('add-disk', st.dir, st.disks[1],
              line='is disk 1 of this store already; if that disk is dead, and this an empty one in its '
                   'place, use replace-disk')
        call('remove-disk', st.dir, st.disks[1])
        call('balance', st.dir)
        call('add-disk', st.dir, st.disks[1])
        assert [each['state'] for each in told('show', st.dir)['disks']] == ['ok'] * 3
        st.is_clean()
        for path, line in ((os.path.join(st.disks[0], 'blocks'), 'cannot lie in another one'),
                           (st.top, 'cannot lie in another one'),
                           (st.dir, "lies in the store's own folder"),
                           (os.path.join(st.dir, 'titles'), "lies in the store's own folder")):
            fails('add-disk', st.dir, path, line=line)
        st.is_clean()


@test
def titles_are_removed():
    """a removed title leaves no blocks; one that is not there is an error"""
    with store() as st:
        st.add('x/a', some_bytes(100000))
        st.add('b', some_bytes(100000))
        out, err = call('remove', st.dir, 'x/a', 'none', status=1)
        assert out == 'removed x/a\n' and "no title 'none'" in err, (out, err)
        assert os.listdir(os.path.join(st.dir, 'titles')) == ['b.index']
        assert len(st.blocks()) == 4
        st.is_clean()


@test
def every_command_prints_json():
    """init, add-disk, remove-disk and remove print with --json what they have done"""
    with store() as st:
        new, disks = os.path.join(st.top, 'new'), [st.folder(f'n{i}') for i in range(3)]
        made = told('init', new, '--disks', ','.join(disks[:2]))
        assert made == {'store': new, 'disks': disks[:2]}, made
        assert told('add-disk', new, disks[2]) == [{'path': disks[2]}]
        assert told('remove-disk', new, disks[0]) == [{'path': disks[0]}]
        assert told('remove-disk', new, '/nowhere', status=1) == []
        st.add('a', some_bytes(100000))
        assert told('remove', st.dir, 'a', 'none', status=1) == [{'name': 'a'}]


@test
def a_file_that_is_too_large_is_not_begun():
    """without room for all copies, nothing is written, and the line says what is needed"""
    with tempfile.TemporaryDirectory() as top:
        script = '''cd "$1" && mkdir a b && for d in a b; do mount -t tmpfs -o size=4m none $d; done
            head -c 3500000 /dev/zero >big
            "$2" init st --disks a,b --slice 500ms && "$2" add st big --rate 1M; echo status $?
            ls a/blocks b/blocks st/adding
            head -c 2000000 /dev/zero >one; cp one two
            "$2" add st one two --rate 1M; echo status $?; ls a/blocks; "$2" add st one --rate 1M'''
        done = in_namespace(script, top, program())
        assert done.stdout.count('status 1') == 2, done
        assert 'a/blocks:\n\nb/blocks:\n\nst/adding:\n' in done.stdout, done
        assert re.search(r'no room for the title: 3\.5 MB are needed, and the disks have room for '
                         r'3\.1 MB in two copies', done.stderr), done
        assert 'no room for the 2 titles: 4.0 MB are needed' in done.stderr, done
        assert done.stdout.endswith('added one: 2.0 MB in 31 blocks\n'), done


@test
def missing_disks_are_told_before_missing_room():
    """with too few disks for the policy, the line of add asks for disks, not for room"""
    with store(disks=2) as st:
        shutil.rmtree(st.disks[1])
        fails('add', st.dir, CLIP, line='policy rda needs more disks than the store has now')


@test
def disks_of_different_size_are_filled():
    """titles for which there is room are added on disks of which one is larger than the others"""
    with tempfile.TemporaryDirectory() as top:
        script = '''cd "$1" && mkdir a b c && mount -t tmpfs -o size=20m none c
            for d in a b; do mount -t tmpfs -o size=4m none $d; done
            head -c 2900000 /dev/zero >one; cp one two
            for i in 1 2 3 4 5; do "$2" init st$i --disks a,b,c --slice 500ms &&
                "$2" add st$i one two --rate 1M; rm -r a/* b/* c/*; done'''
        done = in_namespace(script, top, program())
        assert done.stdout.count('added one') == done.stdout.count('added two') == 5, done


@test
def disks_that_are_full_in_between_leave_no_half_title():
    """when the disks are full before the end, what was written is removed"""
    with tempfile.TemporaryDirectory() as top:
        # There is room for the bytes, but not for so many files.
        script = '''cd "$1" && mkdir a b
            for d in a b; do mount -t tmpfs -o size=40m,nr_inodes=20 none $d; done
            head -c 3000000 /dev/zero >big; head -c 500000 /dev/zero >small
            "$2" init st --disks a,b --slice 500ms && "$2" add st big --rate 1M; echo status $?
            ls a/blocks b/blocks st/adding; "$2" add st small --rate 1M && "$2" verify st'''
        done = in_namespace(script, top, program())
        assert 'status 1' in done.stdout, done
        assert 'No space left on device' in done.stderr or 'the disks are full' in done.stderr, done
        assert 'a/blocks:\n\nb/blocks:\n\nst/adding:\n' in done.stdout, done
        assert 'added small' in done.stdout and ': 0 bad copies, 0 lost blocks\n' in done.stdout, done


@test
def ctrl_c_ends_at_a_safe_point():
    """SIGINT and SIGTERM end an add with status 130, and nothing of the title stays"""
    with store() as st:
        big = st.file('big', b'')
        os.truncate(big, 2 << 30)
        for number in signal.SIGINT, signal.SIGTERM:
            adding = subprocess.Popen([program(), 'add', st.dir, big, '--rate', '8M'],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            until = time.monotonic() + 50
            while not st.blocks():
                assert adding.poll() is None and time.monotonic() < until
                time.sleep(0.01)
            adding.send_signal(number)
            out, err = adding.communicate(timeout=50)
            assert adding.returncode == 130, (adding.returncode, out, err)
            assert err.endswith('weir-store: interrupted\n') and not out, (out, err)
            assert not st.blocks() and not os.listdir(os.path.join(st.dir, 'adding'))
        st.is_clean()


@test
def a_second_signal_ends_at_once():
    """a program that a disk holds ends by a second signal, with status 130"""
    with store() as st:
        st.add('a', some_bytes(100000))
        for pipe in (pipes := [st.path('a', 0, copy) for copy in (0, 1)]):
            os.unlink(pipe)
            os.mkfifo(pipe)
        verify = subprocess.Popen([program(), 'verify', st.dir], stdout=subprocess.PIPE)
        # Once it has read the first copy, it waits for the second.
        os.close(os.open(pipes[0], os.O_WRONLY))
        verify.send_signal(signal.SIGINT)
        verify.send_signal(signal.SIGTERM)
        verify.communicate(timeout=50)
        assert verify.returncode == 130, verify.returncode


@test
def the_model_is_the_dissertations():
    """model prints the number of streams that the dissertation's formula gives"""
    out, _ = call('model', '--access', '17ms', '--rate', '525M', '--disks', '8', '--slice', '5s')
    assert re.search(r'^disks +1 +2 +4 +8$', out, re.M), out
    assert re.search(r'^ 6 Mb/s +67 +134 +269 +539$', out, re.M), out
    table = told('model', '--disks', '3', '--line', '1G')
    found = {(each['rate'], each['disks']): each['streams'] for each in table['streams']}
    assert found[25000000, 3] == 40 and found[1000000, 1] == 188, found


@test
def the_model_measures_the_disks():
    """model DIR measures access time and rate by the store's blocks"""
    with store() as st:
        fails('model', st.dir, line='no blocks of 256 KiB or more')
        call('add', st.dir, st.file('a', some_bytes(4 << 20)), '--rate', '8M')
        table = told('model', st.dir)
        assert 0 < table['access'] < 10 and table['rate'] > 1e6 and table['slice'] == 0.5, table
        assert {each['disks'] for each in table['streams']} == {1, 2, 4}
        given = told('model', st.dir, '--access', '17ms')
        assert given['access'] == 0.017 and given['rate'] > 1e6, given


@test
def the_page_of_the_store_is_right():
    """the commands of docs/store.md run in their order, and print what the page has"""
    with tempfile.TemporaryDirectory() as top:
        os.mkdir(os.path.join(top, 'films'))
        for name in 'film.mp4', 'films/one.mp4', 'films/two.mp4':
            shutil.copy(CLIP, os.path.join(top, name))
        os.mkdir(os.path.join(top, 'bin'))
        os.symlink(program(), os.path.join(top, 'bin/weir-store'))
        script = 'set -e\n' + ''.join(blocks('docs/store.md', 'sh'))
        done = subprocess.run(['sh', '-c', script], cwd=top, capture_output=True, text=True, timeout=60 * SLOWER,
                              env={**os.environ, 'PATH': f'{top}/bin:{os.environ["PATH"]}'})
        assert done.returncode == 0, done
        with open(os.path.join(ROOT, 'docs/store.md'), encoding='utf-8') as file:
            page = file.read()
        table = done.stdout[done.stdout.index('Streams of disks'):done.stdout.index('wrote film')]
        assert ''.join(f'    {line}\n' if line else '\n' for line in table.splitlines()) in page, table


if __name__ == '__main__':
    run()
