# SPDX-License-Identifier: LGPL-2.1-or-later
"""The requests with which the light client begins and ends a session."""

import socket

from proxy import matches, wait_until
from pulled import check_plays, is_down, only, play, pulled, requests, status
from scripted import AUDIO, VIDEO, Server
from tap import run, test

BOTH = VIDEO, AUDIO


def separate(server, answer='459 Aggregate Operation Not Allowed'):
    """Has the server play and end each track by its own URL only."""
    def mangle(method, text):
        _, uri, _ = server.sessions[-1].requests[-1]
        whole = method in ('PLAY', 'TEARDOWN') and not uri[-1].isdigit()
        return status(answer)(text) if whole else text

    def play_all(session):
        if len(requests(server, 'PLAY')) == 3:
            play(session, BOTH)

    server.mangle, server.play = mangle, play_all
    return server


@test
def tracks_that_cannot_be_played_at_once_are_played_one_by_one():
    for answer in '459 Aggregate Operation Not Allowed', '404 Not Found':
        server = separate(Server(tracks=BOTH), answer)
        with pulled(server) as proxy:
            check_plays(proxy, BOTH)
            tracks = [f'{server.url}/track{number}' for number in BOTH]
            assert [each[1] for each in requests(server, 'PLAY')][1:] == tracks
            assert proxy.stop() == 0
            wait_until(lambda: len(requests(server, 'TEARDOWN')) == 2, 5, 'two TEARDOWN')
            assert [each[1] for each in requests(server, 'TEARDOWN')] == tracks


@test
def a_server_that_plays_no_track_is_down():
    server = Server(tracks=BOTH, mangle=only('PLAY', status('459 Aggregate')))
    is_down(server, r'the upstream answered PLAY with 459 .*')
    assert server.sessions[0].asked.count('PLAY') == 2, server.sessions[0].asked


def before_play(session):
    """Returns the methods of the session's requests, up to PLAY."""
    return session.asked[:session.asked.index('PLAY') + 1]


@test
def nothing_but_the_necessary_is_asked_before_play():
    """DESCRIBE, a SETUP a track and PLAY: as few round trips as the protocol allows"""
    for tracks in (VIDEO,), BOTH:
        server = Server(lambda session, tracks=tracks: play(session, tracks), tracks=tracks)
        with pulled(server) as proxy:
            check_plays(proxy, tracks)
            session = server.sessions[0]
            assert before_play(session) == ['DESCRIBE', *['SETUP'] * len(tracks), 'PLAY']
            wait_until(lambda session=session: 'OPTIONS' in session.asked, 5, 'OPTIONS')


@test
def a_server_may_want_options_first():
    def mangle(method, answer):
        session = server.sessions[-1]
        if method != 'DESCRIBE' or 'OPTIONS' in session.asked:
            return answer
        if not closes:
            return status('455 Method Not Valid in This State')(answer)
        session.connection.shutdown(socket.SHUT_RDWR)
        return b''

    for closes in False, True:
        server = Server(play, mangle=mangle)
        with pulled(server) as proxy:
            check_plays(proxy)
            assert not matches(proxy, ' down: '), proxy.output()


if __name__ == '__main__':
    run()
