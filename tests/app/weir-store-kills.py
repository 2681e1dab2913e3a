# SPDX-License-Identifier: LGPL-2.1-or-later
"""weir-store is killed at random moments, and no title is half there and no block lost.

WEIR_STORE_KILLS sets the number of kills while adding (default 20)."""

import os
import random
import shutil
import subprocess
import time

from blockstores import call, program, some_bytes, store, told
from tap import run, test

KILLS = int(os.environ.get('WEIR_STORE_KILLS', 20))
SEED = int(os.environ.get('WEIR_SEED', time.time_ns() % 1000000))


def kill(draw, seconds, *words):
    """Runs weir-store and kills it within so many seconds. Tells whether it was killed."""
    child = subprocess.Popen([program(), *words], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        child.wait(draw.uniform(0, seconds))
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    return child.returncode != 0


def check(st, titles):
    """Checks that the titles are whole, and that no others are there. Returns the leftover files."""
    found = told('verify', st.dir)
    assert not found['problems'] and not found['bad-copies'] and not found['lost-blocks'], found
    assert {each['name'] for each in told('list', st.dir)} == set(titles)
    return found['leftovers']


@test(timeout=60 + 10 * KILLS)
def kills_while_adding():
    """kill -9 while a title is added leaves it whole or not there"""
    draw = random.Random(SEED)
    print(f'# seed {SEED}, {KILLS} kills')
    data = some_bytes(2000000)
    with store(disks=4) as st:
        file = st.file('data', data)
        begin = time.monotonic()
        call('add', st.dir, file, '--name', 'first', '--rate', '1M')
        seconds = time.monotonic() - begin
        titles, killed, i = {'first'}, 0, 0
        while killed < KILLS:
            name, i = f't{i}', i + 1
            was_killed = kill(draw, seconds, 'add', st.dir, file, '--name', name, '--rate', '1M')
            killed += was_killed
            there = name in {each['name'] for each in told('list', st.dir)}
            assert there or was_killed
            titles |= {name} if there else set()
            check(st, titles)
        for name in titles:
            assert st.read(name, 0) == st.read(name, 1) == data, name
        # The next writer removes what was left.
        call('add', st.dir, file, '--name', 'last', '--rate', '1M')
        assert check(st, titles | {'last'}) == 0
        assert not os.listdir(os.path.join(st.dir, 'adding'))


@test(timeout=60 + 10 * KILLS)
def kills_while_removing_and_balancing():
    """kill -9 while blocks are moved or removed loses none"""
    draw = random.Random(SEED)
    data = some_bytes(1000000)
    with store(disks=3, policy='random') as st:
        titles = {f't{i}' for i in range(6)}
        for name in titles:
            st.add(name, data)
        st.disks.append(st.folder('disk3'))
        for i in range(KILLS // 2):
            # One disk goes and comes, so that there is always something to move.
            call('remove-disk' if i % 2 else 'add-disk', st.dir, st.disks[3])
            kill(draw, 0.2, 'balance', st.dir)
            check(st, titles)
            if i % 2:
                call('balance', st.dir)
            if len(titles) > 2:
                name = titles.pop()
                kill(draw, 0.1, 'remove', st.dir, name)
                if name in {each['name'] for each in told('list', st.dir)}:
                    titles.add(name)
                check(st, titles)
        for name in titles:
            assert st.read(name) == data, name
        call('repair', st.dir)
        assert check(st, titles) == 0


@test(timeout=60 + 10 * KILLS)
def kills_while_a_disk_is_replaced():
    """kill -9 while a disk is replaced, dead or not, loses no block, and the next call goes on"""
    draw = random.Random(SEED)
    data = some_bytes(1000000)
    for policy in 'rda', 'raid1':
        with store(disks=4, policy=policy) as st:
            titles = {f't{i}' for i in range(6)}
            for name in titles:
                st.add(name, data)
            for i in range(KILLS // 4):
                old, new = st.disks[i % 4], st.folder(f'new{i}')
                if i % 3 == 0:  # dead, and an empty one is mounted at its path
                    shutil.rmtree(old)
                    os.mkdir(old)
                    new = old
                elif i % 3 == 1:  # dead
                    shutil.rmtree(old)
                kill(draw, 0.2, 'replace-disk', st.dir, old, new)
                for name in titles:
                    assert st.read_good(name) == data, name
                call('replace-disk', st.dir, old, new)
                st.disks[i % 4] = new
                assert check(st, titles) == 0
                for name in titles:
                    assert st.read(name, 0) == st.read(name, 1) == data, name


@test(timeout=60 + 10 * KILLS)
def kills_while_indexes_are_made_anew():
    """kill -9 while repair makes lost indexes anew loses no title, and the next one goes on"""
    draw = random.Random(SEED)
    data = some_bytes(300000)
    with store(disks=3) as st:
        titles = {f'films/t{i}' for i in range(12)}
        for name in titles:
            st.add(name, data)
        for _ in range(KILLS // 4):
            shutil.rmtree(os.path.join(st.dir, 'titles'))
            kill(draw, 0.3, 'repair', st.dir)
            there = {each['name'] for each in told('list', st.dir)} if os.path.isdir(
                os.path.join(st.dir, 'titles')) else set()
            for name in there:
                assert st.read(name, 0) == st.read(name, 1) == data, name
            assert told('repair', st.dir)['restored-indexes'] == len(titles - there)
            assert check(st, titles) == 0


if __name__ == '__main__':
    run()
