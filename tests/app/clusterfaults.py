# SPDX-License-Identifier: LGPL-2.1-or-later
"""Members of a cluster, their cables and etcd fail; readers on the others stay, and each camera has one
connection. `./dev test --faults` runs the long form.

WEIR_CLUSTER_CAMERAS, WEIR_CLUSTER_READERS (of each camera on each member), WEIR_CLUSTER_KILLS,
WEIR_CLUSTER_AWAY (seconds without etcd) and WEIR_CLUSTER_RANDOM (seconds of faults at random) set the sizes.
WEIR_SEED repeats a run.
"""

import contextlib
import os
import random
import signal
import time

from clusternet import HERE, Watch, list_peers, net, settled
from etcdserver import publishing
from proxy import Read, wait_until
from tap import SLOWER, run, test

CAMERAS = int(os.environ.get('WEIR_CLUSTER_CAMERAS', '2'))
READERS = int(os.environ.get('WEIR_CLUSTER_READERS', '1'))
KILLS = int(os.environ.get('WEIR_CLUSTER_KILLS', '2'))
AWAY_S = int(os.environ.get('WEIR_CLUSTER_AWAY', '8'))
RANDOM_S = int(os.environ.get('WEIR_CLUSTER_RANDOM', '15'))
SEED = int(os.environ.get('WEIR_SEED', '40'))
LEASE_S = 5
LONGEST_S = 240 + 40 * KILLS + 4 * AWAY_S + 4 * RANDOM_S


class Readers:
    """Readers of each camera on each member, and the watch at the cameras."""

    def __init__(self, made):
        self._made, self._of = made, {}
        self.watch = Watch(made.cameras)
        for name in made.members:
            self.start(name)
        settled(made, self.watch, 20)

    def start(self, name):
        member = self._made.members[name]
        self._of[name] = [Read(member.url(f'/cam{i}'), readers=READERS, duration=900) for i in range(CAMERAS)]
        wait_until(lambda: self.count(member) >= CAMERAS * READERS, 30, f'{name} has its readers')

    @staticmethod
    def count(member):
        """Returns how many readers a member has that are no members."""
        return sum(each['peer'].startswith(f'{HERE}:') for each in member.get('/v1/readers')['readers'])

    def drop(self, name):
        """Those of a member that does not serve."""
        for each in self._of.pop(name):
            each.kill()

    def check(self, gap_s):
        """Ends all, and checks that each stayed and has continuous numbers. Returns the longest gaps."""
        gaps = []
        for name, readers in self._of.items():
            for each in readers:
                result = each.finish()
                total = result['totals']
                assert total['readers'] == total['ok'] == READERS, (name, result)
                for key in ('lost', 'reordered', 'duplicates', 'ssrc_changes', 'ts_backward'):
                    assert total[key] == 0, (name, key, total)
                gaps += [max(track['max_gap_ms'] for track in reader['tracks'].values()) / 1000
                         for reader in result['readers']]
        gaps.sort()
        p99 = gaps[int(0.99 * (len(gaps) - 1))]
        print(f'# longest gap of media: {p99:.2f} s at the 99th percentile, {gaps[-1]:.2f} s at most')
        assert p99 < gap_s * SLOWER, gaps
        return gaps

    def stop(self):
        self.watch.stop()
        for readers in self._of.values():
            for each in readers:
                each.kill()

    def check_cameras(self, two_s=(LEASE_S + 2) * SLOWER):
        watch = self.watch
        print(f'# connections of a camera: {watch.most} at most, two for {watch.longest_two_s:.1f} s')
        assert watch.most <= 2 and watch.longest_two_s < two_s, (watch.most, watch.longest_two_s)


@contextlib.contextmanager
def reading(made):
    readers = Readers(made)
    try:
        yield readers
    finally:
        readers.stop()


def owners_first(made):
    """Returns the names of members, those first that own a stream."""
    owners = [made.owner(f'/cam{i}') for i in range(CAMERAS)]
    return sorted(made.members, key=lambda name: name not in owners)


@test(timeout=LONGEST_S)
def members_are_killed():
    """one member after the other is killed, and starts again"""
    with net(5, CAMERAS) as made, reading(made) as readers:
        for name in owners_first(made)[:KILLS]:
            time.sleep(1)
            readers.watch.away.add(made.lines[name].host)
            made.members.pop(name).kill()
            readers.drop(name)
            settled(made, readers.watch, LEASE_S + 10)
            readers.watch.away.clear()
            made.start(name)
            made.wait_for_all()
            readers.start(name)
        readers.check(2)
        readers.check_cameras()


@test(timeout=LONGEST_S)
def a_cable_is_cut():
    """the owner's cable, in both directions, and then it is mended"""
    with net(5, CAMERAS) as made, reading(made) as readers:
        name = owners_first(made)[0]
        time.sleep(1)
        line, member = made.lines[name], made.members.pop(name)
        readers.watch.away.add(line.host)
        line.cut()
        settled(made, readers.watch, LEASE_S + 12)
        readers.drop(name)
        line.mend()
        made.members[name] = member
        made.wait_for_all(20)
        wait_until(lambda: member.cluster()['joined'], 15, f'{name} has joined again')
        readers.watch.away.clear()
        readers.start(name)
        settled(made, readers.watch, 20)
        readers.check(3)
        readers.check_cameras(LEASE_S)


def is_whole(member, made):
    seen = member.cluster()
    return seen['joined'] and seen['whole'] and [each['name'] for each in seen['members']] == sorted(made.members) \
        and all(each['owner'] for each in seen['streams'])


def wait_until_whole(made):
    start = time.monotonic()
    wait_until(lambda: all(is_whole(member, made) for member in made.members.values()), 10, 'all maps are whole')
    print(f'# all maps are whole after {time.monotonic() - start:.1f} s')


@test(timeout=LONGEST_S)
def etcd_fails():
    """its leader is killed; then all of it, for a while; then it starts empty"""
    with net(5, CAMERAS) as made, reading(made) as readers:
        made.etcds.kill_leader()
        time.sleep(LEASE_S + 2)
        wait_until_whole(made)
        made.etcds.start()
        for empty in False, True:
            made.etcds.kill()
            time.sleep(AWAY_S)
            made.etcds.start(empty)
            wait_until_whole(made)
            settled(made, readers.watch, 15)
        gaps = readers.check(1)
        assert gaps[-1] < SLOWER, gaps
        assert readers.watch.most == 1, readers.watch.most


# ---- faults at random ----


class Chaos:
    """One fault after the other. Each ends before the next one, and the member serves again."""

    def __init__(self, made, readers, rng):
        self.made, self._readers, self._rng = made, readers, rng
        self.ended = []  # members that do not run any more

    def run(self):
        name = self._rng.choice(sorted(self.made.members))
        fault = self._rng.choice((self.kill, self.end, self.drain, self.cut, self.publish, self.zap, self.zap))
        print(f'# {fault.__name__} {name}', flush=True)
        fault(name)

    def _start(self, name):
        self.made.start(name)
        self._readers.start(name)

    def kill(self, name):
        self.ended.append(self.made.members.pop(name))
        self.ended[-1].kill()
        self._readers.drop(name)
        time.sleep(self._rng.uniform(0, 3))
        self._start(name)

    def end(self, name):
        member = self.made.members.pop(name)
        self.ended.append(member)
        member.signal(signal.SIGTERM)
        assert member.wait(20) == 0
        self._readers.drop(name)
        self._start(name)

    def drain(self, name):
        self.made.members[name].http('POST', '/v1/drain')
        time.sleep(self._rng.uniform(0, 2))
        self.end(name)

    def cut(self, name):
        line = self.made.lines[name]
        line.cut()
        time.sleep(self._rng.uniform(0, LEASE_S + 2))
        self._readers.drop(name)
        line.mend()
        self._readers.start(name)

    def publish(self, name):
        with publishing(self.made.members[name], '/live'):
            other = self.made.members[self._rng.choice(sorted(self.made.members))]
            with Read(other.url('/live'), duration=2) as reader:
                time.sleep(self._rng.uniform(1, 3))
                reader.kill()

    def zap(self, name):
        camera = self._rng.randrange(CAMERAS)
        with Read(self.made.members[name].url(f'/cam{camera}'), duration=20) as reader:
            time.sleep(self._rng.uniform(0, 1))
            reader.kill()


def check_map(made):
    """Each member's map has what runs: the camera's one peer is the owner, and all others read it."""
    hosts = {line.host: name for name, line in made.lines.items()}
    for member in made.members.values():
        streams = {each['path']: each for each in member.cluster()['streams']}
        assert set(streams) == {f'/cam{i}' for i in range(CAMERAS)}, (member.name, streams)
        for i, camera in enumerate(made.cameras):
            seen = streams[f'/cam{i}']
            takers = {each['member']: each['from'] for each in seen['readers']}
            assert [hosts[peer] for peer in list_peers(camera.port)] == [seen['owner']], (member.name, seen)
            assert set(takers) == set(made.members) - {seen['owner']}, (member.name, seen)
            assert all(takers.values()), (member.name, seen)


def is_right(made):
    try:
        check_map(made)
    except AssertionError:
        return False
    return True


def check_sound(member):
    """A sanitizer has found nothing."""
    wrong = [line for line in member.lines if 'Sanitizer' in line or 'runtime error' in line]
    assert not wrong, (member.name, wrong)


@test(timeout=LONGEST_S)
def faults_at_random():
    """after kills, cuts, drains, publishers and zaps at random, the map is what runs, and nothing is owned twice"""
    print(f'# seed {SEED}')
    with net(5, CAMERAS) as made, reading(made) as readers:
        chaos = Chaos(made, readers, random.Random(SEED))
        end = time.monotonic() + RANDOM_S
        while time.monotonic() < end:
            chaos.run()
        made.wait_for_all(20)
        settled(made, readers.watch, 30)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: is_right(made), 15, 'the map is what runs')
        check_map(made)
        for member in list(made.members.values()):
            made.members.pop(member.name)
            assert member.stop() == 0, member.name
            chaos.ended.append(member)
        for member in chaos.ended:
            check_sound(member)


if __name__ == '__main__':
    run()
