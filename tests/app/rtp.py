# SPDX-License-Identifier: LGPL-2.1-or-later
"""RTP upstreams, rtp:// and sdp://, packet by packet: what is relayed, counted and refused."""

import os
import signal
import socket
import struct
import tempfile
import time
from contextlib import ExitStack, contextmanager

from control import Controlled
from proc import free_port, thread_names
from proxy import QUICK, listens, matches, wait_until
from rtpsender import FIR, PLI, Sender, numbers, packet, session, uri
from scripted import SSRC, feedback, reports
from tap import run, test

MANY = 50


@contextmanager
def served(upstream, *ports, **settings):
    """Runs the proxy with an upstream that is always on, and waits until its ports are open."""
    with Controlled({'/cam': {'upstream': upstream, 'on-demand': False, **settings}}) as proxy:
        for port in ports:
            wait_until(lambda port=port: listens(port), 10, f'port {port} is open')
        yield proxy


def ingest(proxy):
    return proxy.get('/v1/mounts/cam')['ingest']


def check_dropped(proxy, malformed, foreign):
    proxy.signal(signal.SIGTERM)
    assert proxy.wait(5) == 0
    found = [line.groups() for line in matches(
        proxy, r' dropped (\d+) malformed datagrams, (\d+) from other senders, '
               r'(\d+) for lack of buffer space')]
    assert found == [(str(malformed), str(foreign), '0')], found


def count_threads(proxy):
    """Counts the threads of a proxy, without those of pools that have threads for the processors."""
    names = thread_names(proxy.pid).values()
    assert any(name.startswith('weir-ingest') for name in names), names
    return sum(not name.startswith(('weir-ingest', 'weir-worker')) for name in names)


def bring_up(proxy, senders):
    for n, sender in senders.items():
        wait_until(lambda port=sender.port: listens(port), 10, f'port {sender.port} is open')
        sender.send(packet(1))
        proxy.wait_for_line(rf' mount /cam{n} up: ')


@test
def fifty_mounts_cost_no_thread():
    with ExitStack() as stack:
        senders = {n: stack.enter_context(Sender(free_port())) for n in range(MANY)}
        mounts = {f'/cam{n}': {'upstream': uri(sender.port), 'on-demand': False}
                  for n, sender in senders.items()}
        proxy = stack.enter_context(Controlled(mounts))
        bring_up(proxy, senders)
        # Those that open the mounts for readers end.
        wait_until(lambda: count_threads(proxy) < 10, 20, 'few threads are left')


@test
def lost_swapped_and_repeated_packets_add_up():
    port = free_port()
    with served(uri(port), port, port + 1) as proxy, Sender(port) as sender, \
            sender.watched(proxy) as reader:
        sender.report(0)
        first, sent, lost = sender.next, [], []
        for at in range(first, first + 400, 8):
            # Of eight packets, two are swapped, one is sent three times and the last one is lost.
            sent += [at + n for n in (0, 2, 1, 3, 3, 3, 4, 5, 6)]
            lost.append(at + 7)
        last = lost[-1] + 1
        sent.append(last)
        for number in sent:
            sender.send(packet(number))
            time.sleep(0.001) # a burst would test the kernel's buffers
        got = numbers(reader, last)
        assert got == list(dict.fromkeys(sent)), got
        counts = ingest(proxy)
        assert counts['packets'] == first + len(set(sent)), (counts, first)
        assert counts['lost'] == len(lost), (counts, len(lost))
        assert counts['stale'] == counts['malformed'] == 0, counts
        # The sender is told the same.
        told = (None, None, None)
        while told[2] != last:
            told = reports(sender.rtcp.recv(2000)).get(SSRC, told)
        assert told[1] == len(lost), told


@test
def packets_of_a_stranger_are_refused_and_counted():
    port = free_port()
    with served(uri(port), port, port + 1) as proxy, Sender(port) as sender, \
            Sender(port, '127.0.0.2') as stranger:
        with sender.watched(proxy) as reader:
            first = sender.next
            for number in range(first, first + 30):
                sender.send(packet(number))
                stranger.send(packet(1000 + number), b'noise')
                stranger.report(0)
                # The sender's own: another SSRC, another payload type, and no RTP.
                sender.send(packet(2000 + number, ssrc=7), b'\x80\x61' + packet(number)[2:], b'x')
            sender.send(packet(first + 30))
            assert numbers(reader, first + 30) == list(range(first, first + 31))
            assert ingest(proxy)['packets'] == first + 31, ingest(proxy)
        check_dropped(proxy, malformed=60, foreign=120)


@test
def noise_is_no_answer():
    port = free_port()
    with served(uri(port), port, port + 1, **QUICK) as proxy, Sender(port) as sender:
        while not (down := matches(proxy, r' mount /cam down: .*: (no .*);')):
            sender.send(b'noise', b'\x80\x61' + packet(1)[2:]) # no RTP; another payload type
            time.sleep(0.02)
        assert down[0][1] == 'no answer within 1.0 s', down


@test
def another_sender_takes_over_when_the_first_is_silent():
    port = free_port()
    with served(uri(port), port, port + 1) as proxy, Sender(port) as sender, \
            Sender(port, '127.0.0.2') as other, sender.watched(proxy) as reader:
        number = first = sender.next
        while ingest(proxy)['packets'] < first + 3:
            other.send(packet(number, ssrc=9))
            number += 1
            time.sleep(0.05)
        got = numbers(reader, number - 1)
        assert got == list(range(got[0], number)) and got[0] > first, (got, first)
        # Its numbers continue from those of the first sender.
        assert ingest(proxy)['lost'] == 0, ingest(proxy)


@contextmanager
def described(text, *ports, **settings):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'session.sdp')
        with open(path, 'w', encoding='ascii') as file:
            file.write(text)
        with served(f'sdp://{path}', *ports, **settings) as proxy:
            yield proxy, path


def asked(proxy, sender, where):
    """Returns the keyframe request that arrives at a socket of the sender when a reader asks."""
    with sender.watched(proxy) as reader:
        sender.send(packet(sender.next))
        channel = 1
        while channel != 0:
            channel, data = reader.frame()
        ssrc = data[8:12]
        reader.send_frame(1, struct.pack('>BBHI', 0x80, 201, 1, 7)
                          + struct.pack('>BBHI', 0x80 | PLI, 206, 2, 7) + ssrc)
        while not (found := feedback(where.recv(2000))):
            pass
    return found


@test
def rtcp_goes_where_the_session_says():
    """RTCP uses the next port, the port of a=rtcp, or with rtcp-mux the port of the media"""
    port, other = free_port(), free_port()
    for lines, rtcp_port in ((('rtcp-fb:* nack pli',), port + 1),
                             ((f'rtcp:{other}', 'rtcp-fb:* ccm fir'), other),
                             (('rtcp-mux', 'rtcp-fb:* nack pli'), port)):
        text = session(port, 'AVPF', *lines)
        with described(text, port, rtcp_port) as (proxy, _), Sender(port) as sender:
            assert listens(port + 1) == (rtcp_port == port + 1), lines
            where = sender.rtp
            if rtcp_port != port:
                sender.report(0, rtcp_port)
                where = sender.rtcp
            (kind, ssrc, rest), = asked(proxy, sender, where)
            if kind == FIR:
                ssrc = struct.unpack_from('>I', rest)[0]
            assert (kind, ssrc) == (FIR if 'fir' in lines[-1] else PLI, SSRC), (kind, ssrc)


@test
def a_changed_session_file_is_read_at_the_next_attempt():
    first, second = free_port(), free_port()
    with described(session(first, 'AVP'), first, first + 1, **QUICK) as (proxy, path):
        with open(path, 'w', encoding='ascii') as file:
            file.write(session(second, 'AVP'))
        proxy.wait_for_line(r' mount /cam down: .*no answer within 1\.0 s')
        wait_until(lambda: listens(second), 10, f'port {second} is open')
        assert not listens(first)
        with Sender(second) as sender:
            sender.send(packet(0))
            proxy.wait_for_line(r' mount /cam up: ')
        proxy.wait_for_line(r' mount /cam down: .*no media for 1\.0 s')


@test
def a_session_waits_until_all_its_ports_are_free():
    port, audio = free_port(), free_port()
    text = session(port, 'AVP') + f'm=audio {audio} RTP/AVP 0\r\n'
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(('127.0.0.1', audio))
        with described(text, **QUICK) as (proxy, _):
            proxy.wait_for_line(rf' mount /cam down: .*127\.0\.0\.1 port {audio}: .*in use')
            assert not listens(port)
            taken.close()
            wait_until(lambda: listens(port) and listens(audio + 1), 10, 'the ports are open')
            with Sender(port) as sender:
                sender.send(packet(0))
                proxy.wait_for_line(r' mount /cam up: .*, 2 tracks$')


if __name__ == '__main__':
    run()
