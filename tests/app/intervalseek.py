# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stored titles of an upstream that can seek: length and seeks are passed on, sessions are shared."""

import os
import re
import subprocess
import time

import films
from arrivals import Player
from control import Controlled
from films import FPS, SECONDS
from proc import Proc, Rtsp
from proxy import wait_until
from scripted import KEY_PICTURE, SDP, VIDEO, Server, rtp
from tap import SLOWER, Skip, run, test
from title_proxy import TitleProxy

TRANSPORTS = 'tcp', 'udp'
QUICK = {'linger': '200ms', 'connect-timeout': '5s', 'read-timeout': '5s', 'start-timeout': '20s'}


class Upstream(TitleProxy):
    """rtsp-proxy with a folder of films."""

    def __init__(self):
        super().__init__({'upstream': films.url_of(films.folder()[1])})
        self.film = self.url('/films/film.mp4')


class GstOrigin(Proc):
    """gst-rtsp-server with a launch line, which seeks for each client."""

    def __init__(self):
        program = os.environ.get('WEIR_GST_ORIGIN')
        if not program:
            raise Skip('WEIR_GST_ORIGIN is not set')
        super().__init__(program, films.path_of('film.mp4'))
        self.film = f'rtsp://127.0.0.1:{self.wait_for_line("PORT ([0-9]+)")[1]}/film'


UPSTREAMS = Upstream, GstOrigin


def interval(upstream, length='10s', **settings):
    return {'/title': {'upstream': upstream.film, 'interval': length, **QUICK, **settings}}


def pictures(url, transport, *words):
    return films.pictures(['-rtsp_transport', transport, *words, '-i', url])


def metric(proxy, name):
    return proxy.metric(f'interval_{name}{{mount="/title"}}')


def film():
    return films.pictures(['-i', films.path_of('film.mp4')])


def npt(answer):
    return tuple(float(t) for t in re.fullmatch(r'npt=([\d.]+)-([\d.]+)', answer[1]['range']).groups())


@test
def the_length_of_a_title_is_passed_on():
    for kind in UPSTREAMS:
        check_length(kind)


def check_length(kind):
    with kind() as upstream, Controlled(interval(upstream)) as proxy:
        for transport in TRANSPORTS:
            done = subprocess.run(
                ['ffprobe', '-v', 'error', '-rtsp_transport', transport, '-show_entries',
                 'format=duration', '-of', 'csv=p=0', proxy.url('/title')],
                capture_output=True, text=True, timeout=60 * SLOWER, check=False)
            assert abs(float(done.stdout) - SECONDS) < 0.1, (kind, done.stdout, done.stderr)


@test
def a_seek_gives_the_pictures_of_that_place():
    """FFmpeg gets all pictures from there to the end, over TCP and UDP"""
    for kind in UPSTREAMS:
        check_pictures(kind)


def check_pictures(kind):
    with kind() as upstream, Controlled(interval(upstream)) as proxy:
        whole = film()
        for transport in TRANSPORTS:
            got = pictures(proxy.url('/title'), transport, '-ss', '17')
            place = 17 * FPS
            # Servers begin at the keyframe of the place, or at the one before.
            assert set(got) <= set(whole[place - FPS:]), (kind, transport, len(got))
            rest = whole[place + 1:]
            assert got[-len(rest):] == rest, (kind, transport, len(got))


@test
def players_who_seek_to_a_place_share_a_session():
    with Upstream() as upstream, Controlled(interval(upstream, linger='1s')) as proxy:
        players = []
        for n in range(4):
            player = Player(proxy.port, proxy.url('/title'), TRANSPORTS[n % 2], (0, 1))
            players.append(player)
            assert npt(player.play({'Range': 'npt=0-'})[0]) == (0, SECONDS)
            answer = player.request('PLAY', proxy.url('/title'), {'Range': 'npt=12-'})
            assert answer[0] == 200 and 11 <= npt(answer)[0] <= 12, answer
            player.packets(5)
        assert metric(proxy, 'misses_total') == 2
        # A place of another player is another session.
        assert npt(players[0].request('PLAY', proxy.url('/title'), {'Range': 'npt=5-'}))[0] <= 5
        assert metric(proxy, 'misses_total') == 3
        for player in players:
            player.__exit__()
        wait_until(lambda: metric(proxy, 'sessions') == 0, 10, 'no session is left')


@test
def a_seek_goes_to_a_place_only_that_the_title_has():
    with Upstream() as upstream, Controlled(interval(upstream)) as proxy, \
            Player(proxy.port, proxy.url('/title'), 'tcp', (0, 1)) as player:
        url = proxy.url('/title')
        for place, status in (('npt=20-', 457), ('npt=1000-', 457), ('clock=20260101T000000Z-', 457),
                              ('rubbish', 400), ('npt=0-', 200)):
            assert player.request('PLAY', url, {'Range': place})[0] == status, place
        player.packets(3)
        # It still plays after a seek that was refused, and a PLAY without a place changes nothing.
        assert player.request('PLAY', url, {'Range': 'npt=21-'})[0] == 457
        player.packets(3)
        assert player.request('PLAY', url, {'Range': 'npt=now-'})[0] == 200
        assert player.request('PLAY', url)[0] == 200
        player.packets(3)
        assert metric(proxy, 'misses_total') == 1


@test
def the_answer_names_the_first_packets_of_the_place():
    with Upstream() as upstream, Controlled(interval(upstream)) as proxy, \
            Player(proxy.port, proxy.url('/title'), 'tcp', (0, 1)) as player:
        last = None
        for place in 0, 12, 3, 16:
            answer, _ = player.play({'Range': f'npt={place}-'})
            told = [tuple(map(int, each)) for each in
                    re.findall(r'stream=\d;seq=(\d+);rtptime=(\d+)', answer[1]['rtp-info'])]
            assert len(told) == 2, answer
            packet = player.first(0)
            seq, stamp = int.from_bytes(packet[2:4], 'big'), int.from_bytes(packet[4:8], 'big')
            # A track may begin a little behind the place that the answer names.
            assert seq == told[0][0] and (stamp - told[0][1]) % 2**32 < 9000, (place, told, seq, stamp)
            assert last is None or 0 < (seq - last) % 65536 < 2000, (last, seq)
            last = seq
            player.request('PAUSE', proxy.url('/title'))
            player.frames.clear()


@test
def a_paused_reader_goes_on_where_it_was():
    """also after its session has lost what comes next: then another session goes on there"""
    with Upstream() as upstream, Controlled(interval(upstream, '1s')) as proxy, \
            Player(proxy.port, proxy.url('/title'), 'tcp', (0, 1)) as player:
        url = proxy.url('/title')
        player.play()
        player.packets(30)
        for wait, misses in (0.3, 1), (7, 2):
            status, headers, _ = player.request('PAUSE', url)
            assert status == 200, headers
            seen = [frame for channel, frame in player.frames if channel == 0]
            player.frames.clear()
            time.sleep(wait)
            answer = player.request('PLAY', url)
            at = npt(answer)[0]
            assert answer[0] == 200 and 0.5 < at < 5, (at, answer)
            assert metric(proxy, 'misses_total') == misses, wait
            first = player.first(0)
            if seen and wait < 1: # not a packet is lost or sent twice
                assert first[2:4] == ((int.from_bytes(seen[-1][2:4], 'big') + 1) % 65536).to_bytes(2, 'big')
            player.packets(30)


@test
def a_reader_who_comes_late_gets_the_beginning():
    with Upstream() as upstream, Controlled(interval(upstream)) as proxy:
        whole = film()
        with Player(proxy.port, proxy.url('/title'), 'tcp', (0, 1)) as player:
            player.play()
            player.packets(150)
            got = pictures(proxy.url('/title'), 'tcp', '-t', '3')
            assert got == whole[:len(got)] and len(got) >= 3 * FPS - 2, len(got)
            assert metric(proxy, 'misses_total') == 1


@test
def the_end_of_a_title_ends_its_readers():
    with Upstream() as upstream, Controlled(interval(upstream)) as proxy:
        with Player(proxy.port, proxy.url('/title'), 'tcp', (0, 1)) as player:
            assert npt(player.play({'Range': 'npt=19-'})[0])[0] <= 19
            assert player.closed()
        proxy.wait_for_line(r' reader \S+ out: /title: the title has ended')


# ---- upstreams that cannot seek ----


def pictures_until_it_leaves(session):
    for n in range(10**6):
        session.send(VIDEO, rtp(n, 3600 * n, KEY_PICTURE))
        if session.left.wait(0.04):
            return


def length(method, answer):
    """Says that the title lasts a minute, and plays from its beginning whatever is asked."""
    if method == 'DESCRIBE':
        head, _, body = answer.partition(b'\r\n\r\n')
        body = body.replace(b't=0 0\r\n', b't=0 0\r\na=range:npt=0-60\r\n')
        head = re.sub(rb'Content-Length: \d+', b'Content-Length: %d' % len(body), head)
        return head + b'\r\n\r\n' + body
    if method == 'PLAY':
        return answer.replace(b'\r\n\r\n', b'\r\nRange: npt=0.000-60\r\n\r\n', 1)
    return answer


@test
def an_upstream_that_plays_from_elsewhere_is_asked_once():
    """the answer says from where it plays, the log why, and later readers are offered no seeks"""
    with Server(pictures_until_it_leaves, mangle=length, sdp=SDP) as server:
        mounts = {'/title': {'upstream': server.url, 'interval': '1s', **QUICK}}
        with Controlled(mounts) as proxy:
            with Player(proxy.port, proxy.url('/title'), 'tcp') as player:
                assert npt(player.play()[0]) == (0, 60)
                assert npt(player.request('PLAY', player.url, {'Range': 'npt=30-'})) == (0, 60)
                player.packets(5)
            assert [headers['range'] for session in server.sessions for method, _, headers in session.requests
                    if method == 'PLAY'] == ['npt=0.000-', 'npt=30.000-']
            proxy.wait_for_line('mount /title: the upstream does not seek: it was asked to play from 30.0 s')
            time.sleep(1.1) # the interval
            with Rtsp(proxy.port) as rtsp:
                description = rtsp.request('DESCRIBE', proxy.url('/title'))[2].decode()
                assert 'npt=0' not in description, description


@test
def an_upstream_without_a_length_is_read_from_its_beginning():
    with Server(pictures_until_it_leaves) as server:
        mounts = {'/title': {'upstream': server.url, 'interval': '10s', **QUICK}}
        with Controlled(mounts) as proxy, Player(proxy.port, proxy.url('/title'), 'tcp') as player:
            assert player.play()[0][0] == 200
            player.packets(5)
            assert len(server.sessions) == 1


if __name__ == '__main__':
    run(at_once=4, shared=[films.film_pictures])
