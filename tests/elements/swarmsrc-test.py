#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""swarmsrc with real peers and an HTTP origin, all on loopback."""

import contextlib
import math
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from rangeserver import Origin, bencode, make_torrent
from sanitized import environment
from tap import Skip, run, test
from webserver import WebServer

NEEDS = "import gi, libtorrent; gi.require_version('Gst', '1.0')"


def reason_to_skip():
    """Runs this program again with a Python that has what it needs. Returns a reason if none has."""
    for python in (sys.executable, '/usr/bin/python3'):
        if not os.path.exists(python) or subprocess.run(
                [python, '-c', NEEDS], capture_output=True).returncode != 0:
            continue
        if python == sys.executable and 'SWARMSRC_TEST' in os.environ:
            return None
        env = dict(environment() or os.environ, SWARMSRC_TEST='1')
        sys.stdout.flush()
        os.execve(python, [python, *sys.argv], env)
    return 'python3-libtorrent or python3-gi is missing'


missing = reason_to_skip()
if not missing:
    import gi
    gi.require_version('Gst', '1.0')
    from gi.repository import Gst
    Gst.init(None)
    if not Gst.ElementFactory.find('swarmsrc'):
        missing = 'swarmsrc was not built'
    else:
        import torrents

PIECE = 1 << 16
PIECES = 48
SIZE = PIECES * PIECE - 12345
PATIENCE = 30 * Gst.SECOND if not missing else 0
# A viewer on a busy machine stalls for 2 s in all; a piece that only a peer was asked for which does
# not send it is missed for 30 s.
HARDLY = PATIENCE // 6
RATE = 8_000_000  # bits a second: the title is played in 3 s
SLOW = 3_000_000  # in 8 s
PICKERS = 'rarest', 'in-order', 'beta', 'hybrid', 'adaptive'


class Case:
    """A folder with a title and its torrent."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self.data = random.Random(1).randbytes(SIZE)
        (self.folder / 'title').write_bytes(self.data)
        self.torrent = make_torrent(self.folder, 'title', PIECE)
        return self

    def __exit__(self, *_):
        self._folder.cleanup()


def source(case, **properties):
    element = Gst.ElementFactory.make('swarmsrc')
    element.set_property('listen', '127.0.0.1:0')
    element.set_property('own-session', True)
    element.set_property('torrent', str(case.torrent))
    for name, value in properties.items():
        if isinstance(value, str):
            Gst.util_set_object_arg(element, name.replace('_', '-'), value)
        else:
            element.set_property(name.replace('_', '-'), value)
    return element


def stats(element):
    value = element.get_property('stats')
    return {name: value.get_value(name) for name in map(value.nth_field_name, range(value.n_fields()))}


class Player:
    """Reads a source into memory, at the title's rate if it is paced."""

    def __init__(self, element, data, pace=RATE):
        self.pipeline = Gst.Pipeline()
        self.element = element
        self.data = data
        self.at = 0
        self.bytes = 0
        self.wrong = []
        self.warnings = []
        sink = Gst.ElementFactory.make('fakesink')
        sink.set_property('signal-handoffs', True)
        sink.set_property('sync', False)
        sink.connect('handoff', self._take)
        chain = [element]
        if pace:
            pacer = Gst.ElementFactory.make('ratepacer')
            Gst.util_set_object_arg(pacer, 'mode', 'bitrate')
            pacer.set_property('bitrate', pace)
            chain.append(pacer)
        chain.append(sink)
        for one in chain:
            self.pipeline.add(one)
        for one, other in zip(chain, chain[1:]):
            assert one.link(other)

    def _take(self, _sink, buffer, _pad):
        # The pacer keeps the order of bytes only, so a jump is found by what was asked for.
        data = buffer.extract_dup(0, buffer.get_size())
        if data != self.data[self.at:self.at + len(data)]:
            self.wrong.append(self.at)
        self.at += len(data)
        self.bytes += len(data)

    def seek(self, byte):
        assert self.pipeline.seek_simple(Gst.Format.BYTES, Gst.SeekFlags.FLUSH, byte)

    def start(self):
        return self.pipeline.set_state(Gst.State.PLAYING)

    def start_blocked(self):
        """Starts, and reads no more than the first bytes. Returns what ends that."""
        pad = self.element.get_static_pad('src')
        probe = pad.add_probe(Gst.PadProbeType.BLOCK | Gst.PadProbeType.BUFFER,
                              lambda *_: Gst.PadProbeReturn.OK)
        self.start()
        return lambda: pad.remove_probe(probe)

    def wait(self):
        """Returns None at the end, or the text of the error."""
        bus = self.pipeline.get_bus()
        kinds = Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.WARNING
        while message := bus.timed_pop_filtered(PATIENCE, kinds):
            if message.type == Gst.MessageType.EOS:
                return None
            if message.type == Gst.MessageType.ERROR:
                return message.parse_error()[0].message
            self.warnings.append(message.parse_warning()[0].message)
        raise AssertionError(f'no end after {self.bytes} bytes: {stats(self.element)}')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pipeline.set_state(Gst.State.NULL)


def play_all(case, *all_properties, pace=RATE, met=False):
    """Plays a title to its end, by several readers at the same time; if `met`, from when each has
    bytes of a peer. Returns the statistics of each, and the warnings."""
    with contextlib.ExitStack() as stack:
        players = [stack.enter_context(Player(
            source(case, bitrate=pace or RATE, **properties), case.data, pace))
            for properties in all_properties]
        blocked = [player.start_blocked() for player in players if met]
        until(lambda: not met or all(stats(player.element)['peer-bytes'] for player in players),
              lambda: [stats(player.element) for player in players])
        for go_on in blocked:
            go_on()
        for player in players:
            player.start()
        found = []
        for player in players:
            error = player.wait()
            assert error is None, error
            found.append(stats(player.element))
            assert (player.bytes, player.wrong) == (SIZE, []), (player.bytes, player.wrong)
        return found, [text for player in players for text in player.warnings]


def play(case, pace=RATE, **properties):
    found, warnings = play_all(case, properties, pace=pace)
    return found[0], warnings


def swarm_test(function):
    def body():
        if missing:
            raise Skip(missing)
        with Case() as case:
            function(case)

    body.__name__, body.__doc__ = function.__name__, function.__doc__
    return test(body)


@swarm_test
def the_origin_alone(case):
    """Without peers, all bytes come from the origin"""
    with Origin(case.data) as origin:
        found, _ = play(case, origin=origin.url)
        assert found['origin-bytes'] == SIZE == origin.sent, found
        assert found['peer-bytes'] == 0 and found['share-saved'] == 0, found
        assert found['read-bytes'] == SIZE == found['size'], found


@swarm_test
def peers_alone(case):
    """Without an origin, all bytes come from peers"""
    with torrents.Peer(case.torrent, case.folder) as peer:
        found, _ = play(case, peers=peer.address, pace=None)
        assert found['origin-bytes'] == 0 and found['peer-bytes'] >= SIZE, found
        assert found['share-saved'] == 1, found


@swarm_test
def every_picker(case):
    """With each picker, the bytes are the title's, and peers bring most of them"""
    with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer:
        found, warnings = play_all(case, *(
            {'origin': origin.url, 'peers': peer.address, 'picker': picker} for picker in PICKERS),
            pace=SLOW, met=True)
        for picker, one in zip(PICKERS, found):
            print(f'# {picker}: {one}')
            assert one['share-saved'] > 0.5, one
            assert one['stalled'] < HARDLY, one
        assert sum(one['origin-bytes'] for one in found) == origin.sent, (found, origin.sent)
        assert not warnings, warnings


class Puller:
    """A source whose bytes are pulled."""

    def __init__(self, element):
        self.element = element
        self.pad = element.get_static_pad('src')

    def __enter__(self):
        self.element.set_state(Gst.State.READY)
        assert self.pad.activate_mode(Gst.PadMode.PULL, True)
        assert self.element.set_state(Gst.State.PAUSED) != Gst.StateChangeReturn.FAILURE
        return self

    def pull(self, offset, n):
        flow, buffer = self.pad.get_range(offset, n)
        assert flow == Gst.FlowReturn.OK, flow
        return buffer.extract_dup(0, buffer.get_size())

    def pull_all(self):
        return b''.join(self.pull(at, min(PIECE, SIZE - at)) for at in range(0, SIZE, PIECE))

    def __exit__(self, *_):
        self.element.set_state(Gst.State.NULL)


def error_of(case, **properties):
    """Returns the error with which the element ends, and the time it took, in seconds."""
    with Player(source(case, **properties), case.data, None) as player:
        begin = time.monotonic()
        player.start()
        return player.wait() or 'none', time.monotonic() - begin


def until(condition, what):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.01)


@swarm_test
def pulls_from_anywhere(case):
    """Ranges are pulled in any order, over the ends of pieces and of the file"""
    draws = random.Random(2)
    with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer:
        with Puller(source(case, origin=origin.url, peers=peer.address)) as puller:
            for _ in range(60):
                offset, n = draws.randrange(SIZE), draws.randrange(1, 3 * PIECE)
                assert puller.pull(offset, n) == case.data[offset:offset + n], (offset, n)
            assert puller.pad.get_range(SIZE, 1)[0] == Gst.FlowReturn.EOS


class Jumper(Player):
    """A player without a pace, which follows the segments of flushing seeks."""

    def __init__(self, element, data):
        super().__init__(element, data, None)
        self.begun = self.before = 0  # where the last segment began; the bytes that came before it
        sink = self.pipeline.children[0]
        sink.get_static_pad('sink').add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, self._event)

    def _event(self, _pad, info):
        event = info.get_event()
        if event.type == Gst.EventType.SEGMENT:
            self.begun = self.at = event.parse_segment().start
            self.before = self.bytes
        return Gst.PadProbeReturn.OK

    def jump(self, byte):
        """Seeks, and waits for the first bytes from there."""
        self.seek(byte)
        until(lambda: self.begun == byte and self.bytes > self.before,
              lambda: (byte, self.begun, self.bytes, self.before, stats(self.element)))

    def wait_for_last(self):
        """Plays to the end. The bus may have messages of ends before a seek."""
        while self.at < SIZE:
            assert self.wait() is None


@swarm_test
def seeks_all_the_time(case):
    """After each of many flushing seeks, the bytes are right"""
    draws = random.Random(3)
    with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer:
        element = source(case, origin=origin.url, peers=peer.address, bitrate=RATE)
        with Jumper(element, case.data) as player:
            player.start()
            for _ in range(12):
                player.jump(draws.randrange(PIECES) * PIECE // 2)
            player.wait_for_last()
            assert (player.at, player.wrong) == (SIZE, []), (player.at, player.wrong)


@swarm_test
def seeks_end_waits(case):
    """A flushing seek ends the wait for a piece that nobody has, and a later peer sends the bytes"""
    with torrents.Peer(case.torrent, case.folder) as peer:
        element = source(case, bitrate=RATE)
        with Jumper(element, case.data) as player:
            player.start()
            for piece in range(1, 12):
                player.seek(piece * PIECE)  # returns when the streaming thread has
            assert player.bytes == 0, player.bytes
            element.set_property('peers', peer.address)
            player.jump(PIECE // 2)
            player.wait_for_last()
            assert (player.bytes, player.wrong) == (SIZE - PIECE // 2, []), (player.bytes, player.wrong)


@swarm_test
def a_storage_of_three_pieces(case):
    """With room for three pieces, all bytes are right, and peers learn what has left"""
    with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer:
        element = source(case, origin=origin.url, peers=peer.address, bitrate=RATE, leave='seed',
                         storage=str(3 * PIECE))
        with Player(element, case.data) as player, tempfile.TemporaryDirectory() as empty:
            player.start()
            assert player.wait() is None
            assert (player.bytes, player.wrong) == (SIZE, []), (player.bytes, player.wrong)
            found = stats(element)
            print(f'# {found}')
            assert found['pieces-held'] <= 4 and found['pieces-left'] >= PIECES - 4, found
            assert found['origin-bytes'] < 1.5 * SIZE, found
            with torrents.Peer(case.torrent, empty, connect=found['port']) as leech:
                def seen():
                    return [sum(one.pieces) for one in leech.handle.get_peer_info()]
                until(lambda: leech.have() >= 2, lambda: (seen(), stats(element)))
                until(lambda: all(n <= 4 for n in seen()), lambda: (seen(), stats(element)))


@swarm_test
def storage_in_a_file(case):
    """Pieces that lie in a file of a folder are the same, and the folder stays empty"""
    with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer, \
            tempfile.TemporaryDirectory() as folder:
        found, _ = play(case, origin=origin.url, peers=peer.address, folder=folder, storage='25%')
        assert found['pieces-left'] > 0, found
        assert not os.listdir(folder)


@swarm_test
def two_elements_share_a_session(case):
    """Two elements with the same settings share pieces: the second one costs the origin nothing"""
    with Origin(case.data) as origin:
        play_all(case, *[{'origin': origin.url, 'own-session': False}] * 2)
        assert origin.sent == SIZE, origin.sent


@swarm_test
def a_rate_that_is_known_later(case):
    """The bit rate of a second element holds for a title whose first element knows none"""
    with Origin(case.data) as origin:
        properties = {'origin': origin.url, 'own_session': False}
        with Puller(source(case, **properties)) as first:
            assert stats(first.element)['bitrate'] not in (0, SLOW), stats(first.element)
            with Puller(source(case, bitrate=SLOW, **properties)) as second, \
                    Puller(source(case, bitrate=RATE, **properties)):
                for each in first, second:
                    assert stats(each.element)['bitrate'] == SLOW, stats(each.element)


@swarm_test
def who_leaves_does_not_wait(case):
    """An element that leaves does not wait for the tracker, which is told nevertheless"""
    left = threading.Event()
    told = []

    def answer(path, _body):
        if 'event=stopped' in path:
            told.append(left.wait(0.9))  # libtorrent waits for a second
        port = int(peer.address.split(':')[1])
        return 200, bencode({'interval': 60, 'peers': b'\x7f\0\0\1' + port.to_bytes(2, 'big')})

    # libtorrent does not say "stopped" while it says "completed": the peer is too slow for the whole.
    with torrents.Peer(case.torrent, case.folder, upload=100_000) as peer, \
            WebServer(answer) as tracker:
        torrent = case.torrent.read_bytes()
        case.torrent.write_bytes(
            b'd8:announce' + bencode(tracker.base + '/announce') + torrent[1:])
        with Puller(source(case)) as puller:
            # A peer is there when the tracker's first answer is.
            until(lambda: stats(puller.element)['peers'], lambda: tracker.requests)
        left.set()
        until(lambda: told, lambda: tracker.requests)
        assert told == [True], told


@swarm_test
def who_leaves_while_pieces_come(case):
    """Elements that leave while pieces of the origin are given to peers end nothing else"""
    with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer:
        for n in range(60):
            with Puller(source(case, origin=origin.url, peers=peer.address, bitrate=RATE)) as puller:
                if n % 2:
                    until(lambda: stats(puller.element)['origin-bytes'], lambda: stats(puller.element))


@swarm_test
def elements_give_to_each_other(case):
    """What one element has from the origin, a later one gets from it"""
    with Origin(case.data) as origin:
        first = source(case, origin=origin.url, leave='seed', bitrate=RATE)
        with Player(first, case.data, None) as player:
            player.start()
            assert player.wait() is None
            player.pipeline.set_state(Gst.State.READY)
            until(lambda: stats(first)['finished'], lambda: stats(first))
            found, _ = play(case, peers=f'127.0.0.1:{stats(first)["port"]}', pace=None)
            assert found['peer-bytes'] >= SIZE and origin.sent == SIZE, (found, origin.sent)
            assert stats(first)['sent-bytes'] >= SIZE, stats(first)
            player.at = player.bytes = 0
            player.start()
            assert player.wait() is None
            assert (player.bytes, player.wrong, origin.sent) == (SIZE, [], SIZE), player.bytes


@swarm_test
def peers_that_lie(case):
    """A peer that sends wrong bytes is banned, and the bytes are right"""
    with torrents.Peer(case.torrent, case.folder, upload=1_000_000) as good, \
            torrents.BadPeer(case.torrent, 'lies') as bad:
        found, _ = play(case, peers=f'{bad.address},{good.address}', pace=None)
        print(f'# {found}')
        assert found['wrong-bytes'] > 0 and found['banned'] >= 1, found


@swarm_test
def seeds_are_counted(case):
    """A peer is a seed when it has said so of each piece, and until it has gone"""
    with torrents.BadPeer(case.torrent, 'stalls') as whole, \
            torrents.BadPeer(case.torrent, 'stalls', has=PIECES - 1) as most:
        element = source(case, peers=f'{whole.address},{most.address}')

        def counted(*expected):
            until(lambda: (stats(element)['peers'], stats(element)['seeds']) == expected,
                  lambda: (expected, stats(element)))

        with Player(element, case.data) as player:
            player.start()
            counted(2, 1)
            until(lambda: most.connection, lambda: most.accepted)
            most.connection.sendall(struct.pack('>IBI', 5, 4, PIECES - 1))
            counted(2, 2)
            most.connection.shutdown(socket.SHUT_RDWR)
            most.listener.close()
            counted(1, 1)


@swarm_test
def peers_that_do_not_help(case):
    """Peers that leave, stall or have nothing only cost the origin"""
    with Origin(case.data) as origin, torrents.BadPeer(case.torrent, 'leaves') as one, \
            torrents.BadPeer(case.torrent, 'stalls') as two, \
            torrents.BadPeer(case.torrent, 'empty') as three:
        found, _ = play(case, origin=origin.url,
                        peers=f'{one.address},{two.address},{three.address}')
        assert one.accepted and two.accepted and three.accepted
        assert found['origin-bytes'] == SIZE and found['stalled'] < HARDLY, found


@swarm_test
def bad_peers_of_every_picker(case):
    """With each picker, peers that lie, leave, stall or have nothing spoil no byte and stop nobody"""
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(Origin(case.data))
        peers = [stack.enter_context(torrents.BadPeer(case.torrent, manner))
                 for manner in ('lies', 'leaves', 'stalls', 'empty')]
        found, _ = play_all(case, *(
            {'origin': origin.url, 'peers': ','.join(peer.address for peer in peers),
             'picker': picker} for picker in PICKERS))
        assert all(peer.accepted >= len(PICKERS) for peer in peers), [p.accepted for p in peers]
        for picker, one in zip(PICKERS, found):
            print(f'# {picker}: {one}')
            assert one['origin-bytes'] >= SIZE and one['stalled'] < HARDLY, one


@swarm_test
def what_the_origin_sends_is_taken_back(case):
    """Peers that can reject are told not to send what the origin was asked for in their place"""
    for rejects in True, False:
        with Origin(case.data) as origin, \
                torrents.BadPeer(case.torrent, 'stalls', rejects=rejects) as peer:
            def sent(number):
                return [body for kind, body in peer.messages if kind == number]
            with Puller(source(case, origin=origin.url, peers=peer.address,
                               bitrate=RATE)) as puller:
                puller.pull(0, PIECE)
                until(lambda: sent(6), lambda: peer.messages)
                assert puller.pull_all() == case.data
            until(lambda: peer.ended, lambda: peer.messages)
            asked, taken_back = sent(6), sent(8)
            assert sorted(taken_back) == (sorted(asked) if rejects else []), peer.messages


@swarm_test
def the_order_of_requests(case):
    """What is needed first is asked first, however many peers have it and few have the rest"""
    unchokes = threading.Event()
    with contextlib.ExitStack() as stack:
        def add(**options):
            return stack.enter_context(torrents.BadPeer(case.torrent, 'stalls', **options))

        def requests(peer):
            return [int.from_bytes(body[:4], 'big') for kind, body in peer.messages if kind == 6]
        whole = add(unchokes=unchokes)
        others = [add(has=PIECES // 2, unchokes=threading.Event()) for _ in range(20)]
        stack.enter_context(Puller(source(
            case, picker='in-order', bitrate=RATE,
            peers=','.join(peer.address for peer in (whole, *others)))))
        until(lambda: all(2 in dict(peer.messages) for peer in (whole, *others)),
              lambda: [peer.messages for peer in (whole, *others)])
        unchokes.set()
        until(lambda: requests(whole), lambda: whole.messages)
        assert requests(whole)[0] == 0, requests(whole)


@swarm_test
def requests_after_a_jump(case):
    """What lies before the reader is asked of peers last"""
    unchokes = threading.Event()
    with Origin(case.data) as origin, \
            torrents.BadPeer(case.torrent, 'stalls', unchokes=unchokes) as peer, \
            Puller(source(case, origin=origin.url, peers=peer.address, picker='in-order',
                          bitrate=RATE // 8)) as puller:
        assert puller.pull(30 * PIECE, PIECE) == case.data[30 * PIECE:31 * PIECE]
        unchokes.set()
        until(lambda: 6 in dict(peer.messages), lambda: peer.messages)
        asked = [int.from_bytes(body[:4], 'big') for kind, body in peer.messages if kind == 6]
        assert asked[0] >= 30, asked


@swarm_test
def no_more_than_the_upload(case):
    """An element sends what `upload` allows, which may be spent up to 3 s later"""
    upload, wanted = 250_000, SIZE // 2
    with Origin(case.data) as origin, \
            Puller(source(case, origin=origin.url, leave='seed', bitrate=RATE,
                          upload=8 * upload)) as giver:
        assert giver.pull_all() == case.data
        until(lambda: stats(giver.element)['finished'], lambda: stats(giver.element))
        begun = time.monotonic()
        with Puller(source(case, peers=f'127.0.0.1:{stats(giver.element)["port"]}')) as taker:
            assert taker.pull(0, PIECE) == case.data[:PIECE]
            until(lambda: stats(taker.element)['peer-bytes'] > wanted, lambda: stats(taker.element))
            sent = stats(giver.element)['sent-bytes']
            most = upload * (time.monotonic() - begun + 3)
            assert wanted < sent <= most, (sent, most)


@swarm_test
def the_least_upload_is_a_limit(case):
    """An upload of one bit a second is not taken as no limit"""
    with Origin(case.data) as origin, \
            Puller(source(case, origin=origin.url, leave='seed', bitrate=RATE, upload=1)) as giver:
        assert giver.pull_all() == case.data
        until(lambda: stats(giver.element)['finished'], lambda: stats(giver.element))
        error, _ = error_of(case, peers=f'127.0.0.1:{stats(giver.element)["port"]}', timeout=2)
        assert 'came neither from a peer' in error, error


@swarm_test
def who_leaves_after_the_download(case):
    """With leave=download, an element leaves when it has all pieces, before they are read"""
    with torrents.Peer(case.torrent, case.folder) as peer:
        for leave in 'download', 'stream':
            with Puller(source(case, peers=peer.address, bitrate=RATE, leave=leave)) as puller:
                assert puller.pull(0, PIECE) == case.data[:PIECE]
                until(lambda: stats(puller.element)['finished'], lambda: stats(puller.element))
                assert stats(puller.element)['ahead-bytes'] == SIZE - PIECE, stats(puller.element)
                if leave == 'download':
                    until(lambda: stats(puller.element)['left'], lambda: stats(puller.element))
                    until(lambda: not stats(puller.element)['peers'],
                          lambda: stats(puller.element))
                else:
                    assert not stats(puller.element)['left'], stats(puller.element)
                assert puller.pull_all() == case.data


@swarm_test
def what_is_read_again_after_leaving(case):
    """Who has left the swarm gets what its storage has lost from the origin"""
    with Origin(case.data) as origin:
        for leave in 'download', 'stream':
            with Puller(source(case, origin=origin.url, bitrate=RATE, leave=leave, timeout=10,
                               storage=str(3 * PIECE))) as puller:
                assert puller.pull_all() == case.data
                until(lambda: stats(puller.element)['left'], lambda: stats(puller.element))
                assert puller.pull_all() == case.data


@swarm_test
def an_origin_that_fails(case):
    """With each fault of the origin, a warning names it, and the swarm goes on"""
    faults = {'404': 'no such file', 'whole': 'ranges', 'long': f'has {SIZE + 1} bytes',
              'wrong': 'does not hash', 'short': 'terminated'}
    for manner, reason in faults.items():
        with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer:
            origin.manner = manner
            found, warnings = play(case, origin=origin.url, peers=peer.address, pace=None)
            print(f'# {manner}: {warnings}')
            assert found['peer-bytes'] >= SIZE and found['origin-errors'] > 0, found
            assert any(reason in text for text in warnings), (manner, warnings)
            assert reason in found['origin-error'], found


@swarm_test
def a_slow_origin(case):
    """While the origin does not answer, peers send all that is needed, after one wait"""
    with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer:
        origin.manner = 'slow'
        found, _ = play(case, origin=origin.url, peers=peer.address)
        print(f'# {found}')
        assert found['peer-bytes'] >= SIZE, found
        # The origin gets 2 s to answer.
        assert found['start-up'] + found['stalled'] < 6 * Gst.SECOND, found


@swarm_test
def an_origin_that_is_down_for_a_while(case):
    """While the origin is down, viewers play what the swarm has, and ask the origin ever less often"""
    warm = PIECES // 4 * 3 * PIECE
    with contextlib.ExitStack() as stack:
        origins = [stack.enter_context(Origin(case.data)) for _ in range(3)]
        giver = stack.enter_context(Puller(source(case, origin=origins[0].url, bitrate=SLOW)))
        for at in range(0, warm, PIECE):
            giver.pull(at, PIECE)
        origins[0].manner = 'down'
        address = f'127.0.0.1:{stats(giver.element)["port"]}'
        # Without a window, nothing is fetched long before it is needed.
        players = [stack.enter_context(Player(source(
            case, origin=one.url, peers=address, bitrate=RATE, window=0), case.data))
            for one in origins[1:]]
        blocked = [player.start_blocked() for player in players]
        for player, origin, go_on in zip(players, origins[1:], blocked):
            until(lambda: stats(player.element)['read-bytes'], lambda: stats(player.element))
            origin.manner = 'down'
            go_on()
        for player, origin in zip(players, origins[1:]):
            until(lambda: player.bytes >= warm, lambda: stats(player.element))
            until(lambda: origin.missed and origin.missed[-1] > origin.missed[0] + 3,
                  lambda: origin.missed)
            print(f'# {len(origin.missed)} requests, {stats(player.element)}')
            # 4 at a time, again after 1 s, 2 s, 4 s... An HTTP client asks twice on a connection
            # that was there before.
            most = 4 * (2 + math.log2(1 + origin.missed[-1] - origin.missed[0])) + 4
            assert len(origin.missed) <= most, (most, origin.missed)
        for origin in origins:
            origin.manner = 'good'
        for player in players:
            assert player.wait() is None
            assert (player.bytes, player.wrong) == (SIZE, []), (player.bytes, player.wrong)


@swarm_test
def nobody_helps(case):
    """Without peers, a broken origin ends the reader with an error that says why"""
    with Origin(case.data) as origin:
        origin.manner = '404'
        error, took = error_of(case, origin=origin.url, timeout=1)
        assert 'piece 0 of 48' in error and 'no such file' in error, error
        assert 1 <= took < 10, took
    error, _ = error_of(case, timeout=1)
    assert 'there is none' in error, error


@swarm_test
def where_peers_cannot_connect(case):
    """A port that is taken, and an address that is not there, are named by warnings"""
    with Origin(case.data) as origin, socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        for listen, reason in ((f'127.0.0.1:{port}', f'127.0.0.1:{port}" is taken'),
                               ('192.0.2.77:6881', 'cannot connect at 192.0.2.77:6881: ')):
            element = source(case, origin=origin.url, listen=listen)
            with Player(element, case.data, None) as player:
                player.start()
                message = player.pipeline.get_bus().timed_pop_filtered(
                    PATIENCE, Gst.MessageType.WARNING)
                assert message and reason in message.parse_warning()[0].message, (listen, message)
                assert player.wait() is None
                assert (player.bytes, player.wrong) == (SIZE, []), (player.bytes, player.wrong)
                assert (stats(element)['port'] not in (0, port)) == ('127' in listen), stats(element)


@swarm_test
def a_web_seed_that_is_not_taken(case):
    """An error says that the torrent's URL of an origin was not taken, and why"""
    for url, reason in (('https://video.example/title', 'its host is a name'),
                        ('http://192.0.2.1/title', 'its host is outside "networks"'),
                        ('ftp://127.0.0.1/title', 'it is no HTTP URL')):
        torrent = case.torrent.read_bytes()
        case.torrent.write_bytes(torrent[:-1] + b'8:url-list' + bencode(url) + b'e')
        error, _ = error_of(case, timeout=1)
        case.torrent.write_bytes(torrent)
        assert f'"{url}" is not asked, as {reason}; set "origin"' in error, error


@swarm_test
def per_cent_of_a_small_title(case):
    """Per cent that are less than three pieces are three pieces"""
    with Origin(case.data) as origin:
        found, _ = play(case, pace=None, origin=origin.url, storage='1%')
        assert found['pieces-held'] == 3, found


@swarm_test
def only_permitted_networks(case):
    """Addresses outside the networks are not talked to"""
    with Origin(case.data) as origin, torrents.BadPeer(case.torrent, 'stalls') as peer:
        element = source(case, origin=origin.url, peers=peer.address, leave='seed', bitrate=RATE,
                         networks='10.0.0.0/8,fd00::/8')
        with Player(element, case.data) as player, tempfile.TemporaryDirectory() as empty:
            player.start()
            with torrents.Peer(case.torrent, empty, connect=stats(element)['port']) as leech:
                assert player.wait() is None
                assert peer.accepted == 0 and stats(element)['peers'] == 0, stats(element)
                assert leech.have() == 0


@swarm_test
def trackers_of_other_networks(case):
    """A tracker outside the networks is not asked"""
    def answer(_path, _body):
        return 200, bencode({'interval': 60, 'peers': b''})

    with Origin(case.data) as origin, WebServer(answer) as tracker:
        torrent = case.torrent.read_bytes()
        case.torrent.write_bytes(
            b'd8:announce' + bencode(tracker.base + '/announce') + torrent[1:])
        play(case, origin=origin.url, networks='127.0.0.2/32')
        assert not tracker.requests, tracker.requests
        play(case, origin=origin.url, networks='127.0.0.1/32')
        assert tracker.requests


@swarm_test
def a_private_torrent(case):
    """Peers of a private torrent are not offered the exchange of peers, whatever the property says"""
    for private in True, False:
        case.torrent = make_torrent(case.folder, 'title', PIECE, private=private)
        with Origin(case.data) as origin, torrents.BadPeer(case.torrent, 'empty') as peer, Puller(
                source(case, origin=origin.url, peers=peer.address, exchange=True)):
            until(lambda: any(number == 20 for number, _ in peer.messages), lambda: peer.messages)
            offered = b''.join(body for number, body in peer.messages if number == 20)
            assert (b'ut_pex' in offered) == (not private), offered


@swarm_test
def torrents_that_are_none(case):
    """A torrent that is none, or properties that are wrong, end with an error that names them"""
    (case.folder / 'none.torrent').write_bytes(b'd4:spam4:eggse')
    for properties, reason in [
            ({'torrent': str(case.folder / 'none.torrent')}, 'is no torrent'),
            ({'torrent': str(case.folder / 'title')}, 'is no torrent'),
            ({'torrent': str(case.folder / 'absent')}, 'absent": No such file'),
            ({'torrent': str(case.folder)}, 'Is a directory'),
            ({'torrent': ''}, 'is not set'),
            ({'torrent': 'magnet:?xt=urn:none'}, 'is no magnet URI'),
            ({'origin': 'ftp://127.0.0.1/a'}, 'is no HTTP URL'),
            ({'file': 'other'}, 'no file "other"'),
            ({'peers': '127.0.0.1'}, 'is no peer'),
            ({'networks': '10.0.0.0/33'}, 'is no network'),
            ({'dht': True}, 'hash table'),
            ({'dht': True, 'networks': '0.0.0.0/0'}, 'hash table'),
            ({'listen': '127.0.0.1'}, '"127.0.0.1" is no address to listen at'),
            ({'listen': '127.0.0.1:0,999.0.0.1:6881'}, '"999.0.0.1:6881" is no address'),
            ({'storage': 'much'}, 'storage "much"'),
            ({'storage': '1K'}, 'too small'),
            ({'folder': '/nowhere'}, 'cannot make a file'),
    ]:
        error, _ = error_of(case, **properties)
        assert reason in error, (properties, error)


@swarm_test
def a_torrent_of_several_files(case):
    """Of several files, one is chosen by its name; without a name, the error lists them"""
    (case.folder / 'b').write_bytes(bytes(range(256)) * 1000)
    case.torrent = make_torrent(case.folder, ['b', 'title'], PIECE)
    error, _ = error_of(case)
    assert 'several files' in error and '"/b", "/title"' in error, error
    (case.folder / 'set').mkdir()
    for name in ('b', 'title'):
        (case.folder / name).rename(case.folder / 'set' / name)
    with Origin(case.data) as origin, torrents.Peer(case.torrent, case.folder) as peer:
        # The first piece has bytes of both files, so it comes from the peer.
        found, _ = play(case, file='title', origin=origin.url, peers=peer.address)
        assert found['size'] == SIZE and found['peer-bytes'] >= PIECE, found


class Files:
    """A torrent of two files, of which no piece begins with the second one, and a folder at an
    origin with them."""

    def __init__(self, case):
        self.case = case
        self.other = bytes(range(256)) * 1000
        (case.folder / 'b').write_bytes(self.other)
        case.torrent = make_torrent(case.folder, ['b', 'title'], PIECE)
        self.origin = Origin(case.data, 'set/title')
        self.origin.files['/set/b'] = self.other
        self.players = contextlib.ExitStack()

    def play(self, name, **properties):
        """Starts to read a file, in the session of others."""
        element = source(self.case, file=name, origin=self.origin.base + '/', own_session=False,
                         **properties)
        data = self.other if name == '/b' else self.case.data
        player = self.players.enter_context(Player(element, data, None))
        player.start()
        return player

    def __enter__(self):
        self.origin.__enter__()
        return self

    def __exit__(self, *what):
        self.players.close()
        self.origin.__exit__(*what)


@swarm_test
def two_files_at_once(case):
    """Two files of a torrent share a session, its connections, and the piece with bytes of both,
    which the origin has in two files"""
    with Files(case) as files, torrents.BadPeer(case.torrent, 'empty') as peer:
        both = [files.play(name, peers=peer.address, leave='seed') for name in ('/b', '/title')]
        assert [player.wait() for player in both] == [None, None]
        assert [player.bytes for player in both] == [len(files.other), SIZE]
        assert not any(player.wrong for player in both)
        until(lambda: all(stats(player.element)['peers'] == 1 for player in both),
              lambda: [stats(player.element) for player in both])
        found = [stats(player.element) for player in both]
        assert [each['size'] for each in found] == [len(files.other), SIZE], found
        assert found[0]['port'] == found[1]['port'] and peer.accepted == 1, (found, peer.accepted)
        whole = len(files.other) + SIZE
        assert files.origin.sent == whole == sum(each['origin-bytes'] for each in found), found


@swarm_test
def a_file_that_is_read_again(case):
    """A file whose pieces have left comes again, while another one of the torrent is read"""
    with Files(case) as files:
        stays = files.play('/title', leave='seed')
        assert stays.wait() is None
        for _ in range(2):
            player = files.play('/b')
            assert player.wait() is None and (player.bytes, player.wrong) == (len(files.other), [])
            player.pipeline.set_state(Gst.State.NULL)
        found = stats(stays.element)
        assert found['pieces-held'] == found['pieces'], found


@swarm_test
def names_in_a_torrent(case):
    """Names that leave the folder, are empty, very long, not of text, or not of one file, are refused"""
    def refusal(paths, folder='set'):
        info = {'name': folder, 'piece length': PIECE, 'pieces': bytes(20),
                'files': [{'length': 9, 'path': path} for path in paths]}
        case.torrent = case.folder / 'names.torrent'
        case.torrent.write_bytes(bencode({'info': info}))
        return error_of(case, file='/good', timeout=1)[0]

    for path, reason in [
            (['..', 'x'], 'leaves its folder'), (['.'], 'leaves its folder'),
            (['a', '..', '..', 'x'], 'leaves its folder'), (['/etc/passwd'], 'has a slash'),
            (['a/b'], 'has a slash'), ([''], 'is empty'), (['a', ''], 'is empty'),
            (['x' * 300], 'more than 240 bytes'), (['y' * 200] * 6, 'more than 1024 bytes'),
            (['a\nb'], 'a control character'), (['a\x7f'], 'a control character'),
            (['a\0b'], 'not UTF-8'), ([b'\xff\xfe'], 'not UTF-8'), (['good'], 'two files have it'),
            (['a\u202eb'], 'libtorrent changes it')]:
        error = refusal([['good'], path])
        assert 'is refused: ' in error and reason in error, (path, error)
        assert '\n' not in error and len(error) < 400, error
    assert 'the name "..", which is refused' in refusal([['good'], ['b']], '..')
    # Names that differ in case are two, and a folder may be called as a file.
    for path in ['Good'], ['good', 'x'], ['a b#%?.mp4']:
        assert 'refused' not in refusal([['good'], path]), path
    assert 'has no file "/good"' in refusal([['sub', 'good'], ['b']])


@swarm_test
def a_magnet_uri(case):
    """A magnet URI gets the description of the torrent from a peer"""
    # libtorrent sends no description of a private torrent.
    case.torrent = make_torrent(case.folder, 'title', PIECE, private=False)
    with torrents.Peer(case.torrent, case.folder) as peer:
        uri = f'magnet:?xt=urn:btih:{peer.handle.info_hash()}'
        case.torrent = uri
        found, _ = play(case, peers=peer.address, pace=None)
        assert found['size'] == SIZE, found


@swarm_test
def uris(case):
    """A URI sets the torrent and its origin, and refuses what it does not know"""
    element = Gst.Element.make_from_uri(
        Gst.URIType.SRC, 'swarm:///srv/a%20b.torrent?origin=http%3A%2F%2F127.0.0.1%2Fa&picker=beta')
    assert element.get_property('torrent') == '/srv/a b.torrent'
    assert element.get_property('origin') == 'http://127.0.0.1/a'
    assert element.get_property('picker').value_nick == 'beta'
    again = Gst.Element.make_from_uri(Gst.URIType.SRC, element.get_uri())
    assert again.get_property('origin') == 'http://127.0.0.1/a'
    for wrong in ('swarm://host/a', 'swarm:///a?leave=seed', 'swarm:///a?picker=none', 'swarm:'):
        try:
            element.set_uri(wrong)
        except gi.repository.GLib.Error:
            continue
        raise AssertionError(wrong)


def frame_hashes(path):
    out = subprocess.run(
        ['ffmpeg', '-v', 'error', '-i', path, '-map', '0:v', '-f', 'framehash', '-hash', 'md5', '-'],
        check=True, capture_output=True, text=True).stdout
    return [line.rsplit(',', 1)[1] for line in out.splitlines() if not line.startswith('#')]


@swarm_test
def frames_of_a_film(case):
    """A film that a demuxer pulls from a swarm has the frames of the file"""
    film = pathlib.Path(os.environ['WEIR_DATA']) / 'bigbuckbunny.mp4'
    (case.folder / 'film.mp4').write_bytes(film.read_bytes())
    torrent = make_torrent(case.folder, 'film.mp4', PIECE)
    with Origin(film.read_bytes()) as origin, torrents.Peer(torrent, case.folder) as peer:
        out = case.folder / 'out.h264'
        pipeline = Gst.parse_launch(
            f'swarmsrc torrent={torrent} origin={origin.url} peers={peer.address} own-session=true '
            'listen=127.0.0.1:0 ! qtdemux ! h264parse ! video/x-h264,stream-format=byte-stream ! '
            f'filesink location={out}')
        pipeline.set_state(Gst.State.PLAYING)
        message = pipeline.get_bus().timed_pop_filtered(
            4 * PATIENCE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        assert message and message.type == Gst.MessageType.EOS, message and message.parse_error()
        pipeline.set_state(Gst.State.NULL)
        expected = frame_hashes(film)
        assert expected and frame_hashes(out) == expected


if __name__ == '__main__':
    run()
