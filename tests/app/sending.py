# SPDX-License-Identifier: LGPL-2.1-or-later
"""How the packets of a mount are sent: the keys spread, max-pacing-rate, buffer-size and drop-policy, and the
stages pace and layers."""

import contextlib
import re
import shutil
import statistics
import struct
import subprocess
import time

from arrivals import Player, receive
from control import CLIP_URI, Controlled
from layered import play, served
from svcfile import GROUP, identify, temporal_of_picture
from tap import Skip, run, test

CLIP = {'upstream': CLIP_URI, 'on-demand': False}
UDP_READERS = 33 # more than two threads' shares of 16 readers


def arrivals(player, seconds):
    """Returns {(RTP timestamp, sequence number): arrival time in s} of the first track."""
    sock, came = player._udp[0], {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        packet, at = receive(sock)
        came[struct.unpack_from('>xxHI', packet)] = at / 1e9
    return came


def sockets(*words):
    """Returns what ss says about sockets."""
    if not shutil.which('ss'):
        raise Skip('ss of iproute2 is not on the PATH')
    return subprocess.run(['ss', '-H', '-n', *words], capture_output=True, text=True, check=True).stdout


def distances(keys):
    """Returns how far apart the readers of a mount get each packet, in s."""
    with Controlled({'/cam': {**CLIP, 'join': 'live', **keys}}) as proxy, contextlib.ExitStack() as stack:
        players = [stack.enter_context(Player(proxy.port, proxy.url(), 'udp')) for _ in range(UDP_READERS)]
        for player in players:
            assert player.request('PLAY', proxy.url())[0] == 200
        time.sleep(1)
        # The packets of one second wait in the sockets, each with its time.
        came = [arrivals(player, 0.01) for player in players]
        common = set.intersection(*(set(each) for each in came))
        assert len(common) > 5, [len(each) for each in came]
        return [max(each[key] for each in came) - min(each[key] for each in came) for key in common]


@test
def sends_are_spread():
    """spread: a packet goes to many readers over most of that time"""
    apart = distances({'spread': '30ms'})
    assert statistics.median(apart) > 0.012, apart


@test
def a_reader_is_paced():
    """max-pacing-rate: the kernel knows the limit of a reader's connection; 0 and no key are no limit"""
    for limit, expected in ('9M', ('9Mbps', '9000000bps')), ('0', (None,)), (None, (None,)):
        keys = {} if limit is None else {'max-pacing-rate': limit}
        with Controlled({'/cam': {**CLIP, **keys}}) as proxy, \
                Player(proxy.port, proxy.url(), 'tcp') as player:
            assert player.request('PLAY', proxy.url())[0] == 200
            player.packets(3)
            text = sockets('-ti', f'sport = :{proxy.port} and dport = :{player.socket.getsockname()[1]}')
            rates = re.search(r'pacing_rate \S+?(?:/(\S+))?(?:\s|$)', text)
            assert rates and rates[1] in expected, (limit, text)


@test
def sockets_have_their_size():
    """buffer-size: the UDP sockets of the mount have it"""
    with Controlled({'/cam': {**CLIP, 'buffer-size': '64K'}}) as proxy, \
            Player(proxy.port, proxy.url(), 'udp') as player:
        assert player.request('PLAY', proxy.url())[0] == 200
        player.packets(3)
        sender = player._udp[0].recvfrom(65536)[1]
        text = sockets('-uam', f'sport = :{sender[1]}')
        assert re.search(r'skmem:\([^)]*\btb131072\b', text), (sender, text) # the kernel doubles it


@test
def keys_change_while_readers_play():
    """PATCH: new values are taken, wrong ones refused with their range"""
    with Controlled({'/cam': CLIP}) as proxy, Player(proxy.port, proxy.url(), 'tcp') as player:
        assert player.request('PLAY', proxy.url())[0] == 200
        player.packets(3)
        new = {'spread': '20ms', 'max-pacing-rate': '8M', 'buffer-size': '4096K', 'drop-policy': 'head'}
        json = {'Content-Type': 'application/json'}
        assert proxy.http('PATCH', '/v1/mounts/cam', new, json)[0] == 200
        player.packets(20)
        config = proxy.get('/v1/mounts/cam')['config']
        assert {key: config[key] for key in new} == new, config
        for key, value in ('spread', '2s'), ('max-pacing-rate', 'fast'), ('buffer-size', '4G'), ('drop-policy', 'new'):
            status, _, answer = proxy.http('PATCH', '/v1/mounts/cam', {key: value}, json)
            assert status == 400 and key in str(answer), (key, status, answer)


def frame_lengths(pipeline):
    """Returns how long the packets of each frame with many packets take to arrive, in s."""
    with Controlled({'/cam': {**CLIP, 'pipeline': pipeline}}) as proxy, \
            Player(proxy.port, proxy.url(), 'udp') as player:
        assert player.request('PLAY', proxy.url())[0] == 200
        frames = {}
        for (_, stamp), at in arrivals(player, 3).items():
            frames.setdefault(stamp, []).append(at)
        return [max(each) - min(each) for each in frames.values() if len(each) >= 4]


@test
def a_stage_paces():
    """the stage pace: the packets of a frame come one after another"""
    paced = frame_lengths(['pull', 'pace'])
    assert paced and statistics.median(paced) > 0.008, paced


@test
def a_stage_keeps_layers():
    """the stage layers: every reader gets the lower layers alone, complete and without gaps"""
    with served(60, pipeline=['pull', {'layers': {'spatial': 1, 'temporal': 0}}]) as proxy, play(proxy) as reader:
        reader.wait_for(GROUP)
        shown = [identify(units) for units in reader.assembler.pictures[1:]]
        assert {temporal_of_picture(number) for number, _ in shown} == {0}, shown
        # The upper spatial layer begins with its next IDR picture.
        begun = next(i for i, (number, _) in enumerate(shown) if number % GROUP == 0)
        assert {spatial for _, spatial in shown[begun:]} == {1}, shown
        assert reader.assembler.lost == 0


if __name__ == '__main__':
    run()
