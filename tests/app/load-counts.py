# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-load's counts match to the packet what a scripted server sends."""

import time

from loads import Load, check, load, load_at_once
from scripted import AUDIO, KEY_PICTURE, SSRC, VIDEO, Server, reports, rtp, sender_report
from tap import run, test

# Across the wrap: 65533 is lost, 65535 arrives late, 3 arrives twice, 6 and 7 are lost.
SEQS = [65530, 65531, 65532, 65534, 0, 65535, 1, 2, 3, 3, 4, 5, 8, 9]
FOUND = {'packets': 14, 'lost': 3, 'reordered': 1, 'duplicates': 1, 'bytes': 14 * 212}


def play(session, piece=None):
    for number, seq in enumerate(SEQS):
        session.send(VIDEO, rtp(seq, 3000 * number), piece=piece)


def check_counts(result, readers, early=0):
    check(result, readers=readers, connected=readers, refused={}, errors={}, invalid=0,
          socket_drops=0, early=early, **{key: readers * value for key, value in FOUND.items()})


@test
def udp_packets_are_counted():
    with Server(play) as server:
        check_counts(load('--duration', 1, server.url), 1)


@test
def tcp_packets_are_counted():
    with Server(play) as server:
        check_counts(load('--duration', 1, '--transport', 'tcp', server.url), 1)


@test
def frames_that_arrive_in_pieces_are_counted():
    with Server(lambda session: play(session, piece=7)) as server:
        check_counts(load('--duration', 1, '--transport', 'tcp', server.url), 1)


@test
def packets_before_the_answer_to_play_are_counted_apart():
    with Server(early=play) as server:
        for result in load_at_once('--duration', 1, server.url):
            check_counts(result, 1, early=len(SEQS))
        with Load('--duration', 1, server.url, json=False) as running:
            assert running.wait() == 0, running.output()
            running.wait_for_line(f'before PLAY +{len(SEQS)}$', 1)


@test
def reports_before_the_answer_to_play_are_counted_apart():
    def report(session):
        session.send(VIDEO, sender_report(1 << 32, 0), rtcp=True)

    with Server(play, early=report) as server:
        for result in load_at_once('--duration', 1, '--verbose', server.url):
            check_counts(result, 1, early=1)
            assert result['per_reader'][0]['tracks'][0]['early'] == 1, result


@test
def packets_before_the_answer_to_teardown_are_counted():
    def late(session):
        for number in range(200):
            session.send(VIDEO, rtp(number, 0))

    with Server(late=late) as server:
        for result in load_at_once('--duration', 0.5, server.url):
            check(result, packets=200, lost=0, errors={})


@test
def counts_of_many_readers_add_up():
    with Server(play) as server:
        result = load('--duration', 2, '--readers', 60, '--transport', 'mixed', '--verbose',
                      server.url)
    check_counts(result, 60)
    assert len(result['per_reader']) == 60
    for reader in result['per_reader']:
        track = reader['tracks'][0]
        assert {key: track[key] for key in FOUND} == FOUND, reader


@test
def data_that_is_not_rtp_is_not_counted():
    def garbage(session):
        play(session)
        for packet in b'', b'\x80', b'\x00' * 100, b'\x8f' + bytes(11), b'\xa0' + bytes(11):
            session.send(VIDEO, packet)

    with Server(garbage) as server:
        for result in load_at_once('--duration', 1, server.url):
            check(result, invalid=5, **FOUND)


def wait_for_report(session, blocks):
    deadline = time.monotonic() + 10
    while not any(reports(packet) == blocks for _, packet in session.rtcp):
        assert time.monotonic() < deadline, session.rtcp
        time.sleep(0.05)


def check_reports(words, blocks):
    with Server(play) as server:
        load_at_once('--duration', 4, *words, server.url)
        assert len(server.sessions) == 2
        for session in server.sessions:
            wait_for_report(session, blocks)


@test
def receiver_reports_give_the_packet_loss():
    check_reports((), {SSRC: (3 * 255 // 16, 3, 65536 + 9)})


@test
def receiver_reports_can_claim_a_loss():
    check_reports(('--loss', 50), {SSRC: (128, 8, 65536 + 9)})


@test
def readers_that_ignore_media_can_claim_a_loss():
    with Server(play) as server:
        load('--duration', 4, '--mute', '--loss', 25, server.url)
        wait_for_report(server.sessions[0], {SSRC: (64, 0, 0)})


@test
def receiver_reports_can_be_turned_off():
    with Server(play) as server:
        load('--duration', 4, '--no-rr', server.url)
        assert not server.sessions[0].rtcp, server.sessions[0].rtcp


@test
def first_frame_is_the_first_key_picture():
    def late(session):
        session.send(VIDEO, rtp(1, 0))
        time.sleep(0.3)
        session.send(VIDEO, rtp(2, 3000, KEY_PICTURE))

    with Server(late) as server:
        results = load_at_once('--duration', 1, server.url)
    for result in results:
        packet, frame = result['first_packet_ms'], result['first_frame_ms']
        assert packet['n'] == 1 and frame['n'] == 1, result
        assert frame['max'] - packet['max'] >= 100, result


@test
def a_long_gap_is_a_stall():
    def stall(session):
        for number in range(3):
            session.send(VIDEO, rtp(number, 3000 * number))
        time.sleep(0.8)  # 0.67 s longer than the timestamps say
        for number in range(3, 6):
            session.send(VIDEO, rtp(number, 9000 + 3000 * number))
        # The timestamps have the same gap, so this is no stall.
        time.sleep(0.8)
        number = 6
        while not session.left.wait(0.03):
            session.send(VIDEO, rtp(number, 81000 + 3000 * number))
            number += 1

    with Server(stall) as server:
        result = load('--duration', 3, server.url)
    check(result, stalls=1)
    assert 799 <= result['frame_gap_ms']['max'] < 5000, result
    assert result['playout_delay_ms']['max'] >= 599, result


@test
def audio_that_lags_is_skew():
    def lagging(session):
        session.send(VIDEO, sender_report(5 << 32, 0), rtcp=True)
        session.send(AUDIO, sender_report(5 << 32, 0, AUDIO), rtcp=True)
        time.sleep(0.1)
        for number in range(30):  # the audio belongs to 200 ms before the video
            session.send(AUDIO, rtp(number, 48 * (40 * number - 200), track=AUDIO))
            session.send(VIDEO, rtp(number, 90 * 40 * number))
            time.sleep(0.04)

    with Server(lagging, tracks=(VIDEO, AUDIO)) as server:
        result = load('--duration', 2, '--transport', 'tcp', server.url)
    assert result['av_skew_ms']['n'] >= 20, result
    assert 190 <= result['av_skew_ms']['p50'] <= 230, result


if __name__ == '__main__':
    run(at_once=8)
