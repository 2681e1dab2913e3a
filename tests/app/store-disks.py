# SPDX-License-Identifier: LGPL-2.1-or-later
"""Disks of a block store die, are missing or may not be read; and what weir-store says and does."""

import os
import re
import shutil
import subprocess
import tempfile

from blockstores import call, fails, in_namespace, program, some_bytes, store, told
from tap import SLOWER, Skip, run, test

NOBODY = 65534


def call_as_nobody(*words):
    done = subprocess.run([program(), *words], capture_output=True, text=True, timeout=120 * SLOWER, check=False,
                          user=NOBODY, group=NOBODY, extra_groups=[])
    return done.returncode, done.stdout


@test
def verify_fails_while_a_disk_is_missing():
    """verify fails while a disk is missing, also if no title needs it any more"""
    with store() as st:
        st.add('a', some_bytes(300000))
        shutil.rmtree(st.disks[1])
        out, _ = call('repair', st.dir)
        assert f'disk 1 ({st.disks[1]}): missing; all copies on it count as bad\n' in out, out
        assert ': 0 lost blocks' not in out and ', 1 missing disks; ' in out, out
        out, _ = call('verify', st.dir, status=1)
        assert f'disk 1 ({st.disks[1]}): missing; ' in out and ' 0 bad copies, ' in out, out
        assert told('verify', st.dir, 'a', status=1)['missing-disks'] == 1


@test
def an_emptied_disk_that_is_removed_is_not_missing():
    """a disk whose removal was killed before it left store.yaml is missed only for its blocks"""
    with store() as st:
        new = st.folder('new')
        call('add-disk', st.dir, new)
        call('remove-disk', st.dir, new)
        os.remove(os.path.join(new, 'weir-disk'))
        assert told('verify', st.dir)['missing-disks'] == 0
        call('balance', st.dir)
        assert new not in call('show', st.dir)[0]
        st.add('a', some_bytes(300000))
        call('remove-disk', st.dir, st.disks[0])
        shutil.rmtree(st.disks[0])
        out, _ = call('verify', st.dir, status=1)
        assert f'a: disk 0 ({st.disks[0]}) is not there; all copies on it count as bad\n' in out, out
        assert ', 1 missing disks' in out, out


@test
def a_disk_of_another_store_is_not_missing():
    """a disk at whose path another disk is mounted is told so"""
    with store() as st:
        shutil.copy(os.path.join(st.disks[2], 'weir-disk'), st.disks[1])
        assert f'disk   1  another disk  {st.disks[1]}\n' in call('show', st.dir)[0]


@test
def a_disk_that_may_not_be_read_is_not_missing():
    """show and verify say of a disk that this user may not read that permission is denied"""
    if os.geteuid() != 0:
        raise Skip('not root, so there is no other user')
    with store() as st:
        os.chmod(st.top, 0o755)
        os.chmod(st.disks[1], 0o700)
        for folder, _, files in os.walk(st.dir):
            for path in [folder, *(os.path.join(folder, name) for name in files)]:
                os.chown(path, NOBODY, NOBODY)
        try:
            status, out = call_as_nobody('show', st.dir)
        except PermissionError as error:
            raise Skip('nobody may not run weir-store here') from error
        assert status == 0 and f'disk   1  permission denied  {st.disks[1]}\n' in out, out
        status, out = call_as_nobody('verify', st.dir)
        assert status == 1 and f'disk 1 ({st.disks[1]}): permission denied; ' in out, out


@test
def what_a_killed_add_has_left_takes_no_room():
    """add removes what a killed one has left before it looks for room"""
    with tempfile.TemporaryDirectory() as top:
        script = '''cd "$1" && mkdir a b && for d in a b; do mount -t tmpfs -o size=4m none $d; done
            "$2" init st --disks a,b --slice 500ms; id=0123456789abcdef0123456789abcdef
            printf film >st/adding/$id
            for d in a b; do mkdir $d/blocks/$id; head -c 2500000 /dev/zero >$d/blocks/$id/00000000; done
            head -c 2000000 /dev/zero >film; "$2" add st film --rate 1M; ls st/adding a/blocks/$id'''
        done = in_namespace(script, top, program())
        assert done.stdout.endswith('added film: 2.0 MB in 31 blocks\nst/adding:\n'), done


@test
def what_a_full_store_cannot_move_is_told():
    """a dead disk of a store that is 4/5 full is replaced at its path; without a new one, balance says
    that there is no room, and fails"""
    with tempfile.TemporaryDirectory() as top:
        script = '''cd "$1" && mkdir a b c d; for d in a b c d; do mount -t tmpfs -o size=6m none $d; done
            "$2" init st --disks a,b,c,d --slice 500ms; for i in 1 2 3 4 5; do
            head -c 1900000 /dev/urandom >t$i; "$2" add st t$i --rate 1M; done
            umount d; "$2" verify st | tail -1; "$2" remove-disk st d; "$2" balance st; echo status $?
            "$2" repair st >repaired; echo status $?; grep -c "no room\\|has room" repaired
            mount -t tmpfs -o size=2m none d; "$2" replace-disk st d d; echo status $?; umount d
            mount -t tmpfs -o size=6m none d; "$2" replace-disk st d d && "$2" balance st && "$2" verify st
            for i in 1 2 3 4 5; do "$2" show st t$i >/dev/null || echo lost; done'''
        done = in_namespace(script, top, program())
        assert re.search(r'disk 3 \(\S+/d\) stays: the other disks have no room for \d+ of its copies; add a '
                         r'disk and run balance again, or replace this one', done.stdout), done
        assert done.stdout.count('status 1') == 3 and '\n1\nstatus 1\n' in done.stdout, done
        assert re.search(r'no room on \S+/d: \d\.\d MB are needed for the copies of disk 3, and there is '
                         r'room for 1\.0 MB', done.stderr), done
        assert re.search(r'd is in the place of d: \d+ copies were written, 0 lost blocks\nmoved \d+ copies\n'
                         r'5 titles, \d+ blocks, \d+ copies: 0 bad copies, 0 lost blocks\n$', done.stdout), done


@test
def a_disk_is_replaced_by_the_command():
    """replace-disk prints what it did, also as JSON, and knows a disk by a relative path"""
    with store(disks=2) as st:
        data = some_bytes(300000)
        st.add('a', data)
        new = st.folder('new')
        out, err = call('replace-disk', st.dir, 'disk0', 'new', cwd=st.top)
        assert out == 'new is in the place of disk0: 5 copies were written, 0 lost blocks\n', out
        assert re.fullmatch(r'weir-store: warning: \S+/disk1 and \S+/new are on one device.*\n', err), err
        assert [disk['path'] for disk in told('show', st.dir)['disks']] == [new, st.disks[1]]
        shutil.rmtree(st.disks[1])
        os.mkdir(st.disks[1])
        found = told('replace-disk', st.dir, st.disks[1], st.disks[1])
        assert found['moved'] == 5 and found['lost-blocks'] == 0 and not found['problems'], found
        st.is_clean()
        assert st.read('a', 0) == st.read('a', 1) == data
        # The old disk's files stay, but it is no disk of the store any more.
        assert not os.path.exists(os.path.join(st.disks[0], 'weir-disk'))
        fails('replace-disk', st.dir, new, '/nowhere', line='/nowhere does not exist')
        fails('replace-disk', st.dir, new, line='takes the arguments DIR OLD NEW', status=2)


if __name__ == '__main__':
    run()
