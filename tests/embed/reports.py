# SPDX-License-Identifier: LGPL-2.1-or-later
"""Receiver reports of UDP readers: they keep sessions alive, can be read, and cannot be abused.

The variable WEIR_RELAY makes these tests use a relay media, which has no RTP session.
"""

import os
import re
import socket
import struct
import time

from proc import Rtsp, free_udp_pair, thread_names
from served import Served
from tap import Skip, run, test


RELAY = 'WEIR_RELAY' in os.environ
ONE, UNICAST = ('/relay', '/relay') if RELAY else ('/one', '/unicast')


def packet(count, kind, body):
    return struct.pack('>BBH', 0x80 | count, kind, len(body) // 4) + body


def block(ssrc, fraction=0, lost=0, highest=0, jitter=0, last_sr=0, delay_sr=0):
    return struct.pack('>IIIIII', ssrc, fraction << 24 | lost & 0xffffff, highest, jitter, last_sr,
                       delay_sr)


def report(own, *blocks):
    sdes = packet(1, 202, struct.pack('>I', own) + b'\x01\x02ab\0\0\0\0')
    return packet(len(blocks), 201, struct.pack('>I', own) + b''.join(blocks)) + sdes


def sender_report(own):
    return packet(0, 200, struct.pack('>IQIII', own, 1 << 32, 0, 1, 1))


def picture_loss(own, of):
    return packet(1, 206, struct.pack('>II', own, of))


def goodbye(own):
    return packet(1, 203, struct.pack('>I', own))


def udp_socket():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def udp_pair(host):
    if ':' not in host:
        return free_udp_pair()
    pair = [socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) for _ in range(2)]
    for one in pair:
        one.bind((host, 0))
    return pair


class Reader(Rtsp):
    """Plays over UDP."""

    def __init__(self, server, path=ONE, host='127.0.0.1'):
        super().__init__(server.port, host)
        self.server, self.host = server, host
        self.url = f'rtsp://{f"[{host}]" if ":" in host else host}:{server.port}{path}'
        self.rtp = self.rtcp = None
        self.bind(udp_pair(host))
        self.play()

    def __exit__(self, *_):
        self.bind((None, None))
        self.socket.close()

    def bind(self, pair):
        """Uses these sockets from the next SETUP on."""
        for one in self.rtp, self.rtcp:
            if one:
                one.close()
        self.rtp, self.rtcp = pair
        if self.rtcp:
            self.rtcp.settimeout(10)
            self.own = self.rtcp.getsockname()[1]

    def set_up(self):
        ports = [one.getsockname()[1] for one in (self.rtp, self.rtcp)]
        status, headers, _ = self.request(
            'SETUP', f'{self.url}/stream=0',
            {'Transport': f'RTP/AVP;unicast;client_port={ports[0]}-{ports[1]}'})
        assert status == 200, (status, headers)
        self.to = int(re.search(r'server_port=\d+-(\d+)', headers['transport'])[1])

    def play(self):
        self.set_up()
        assert self.request('PLAY', self.url)[0] == 200

    def tear_down(self):
        assert self.request('TEARDOWN', self.url)[0] == 200
        self.session = None

    def send_report(self, data, by=None):
        (by or self.rtcp).sendto(data, (self.host, self.to))

    def sender_report(self):
        """Returns the SSRC and the middle of the NTP time of the next sender report."""
        while True:
            data = self.rtcp.recv(2000)
            if data[1] == 200:
                ssrc, ntp = struct.unpack('>IQ', data[4:16])
                return ssrc, ntp >> 16 & 0xffffffff

    def known(self, *names):
        """Returns what the server prints about the reader under these names. `sources` is the last
        line of it: later calls must not find a line of this one."""
        start = len(self.server.lines)
        status = self.request('GET_PARAMETER', self.url)[0]
        assert status == 200, status
        self.server.wait_for_line('^sources ', 5, start)
        return [self.server.wait_for_line(f'^{name} (.*)', 5, start)[1] for name in names]

    def stored(self):
        """Returns how many reports have become the reader's last one."""
        return int(self.known('stored')[0])

    def alive(self):
        return self.request('OPTIONS', self.url)[0] == 200

    def told(self):
        """Returns the reader's last report, the counts of all readers, and the number of sources of
        the RTP session."""
        report_, counts, sources = self.known('report', 'counts', 'sources')
        return fields(report_), fields(counts), int(sources)

    def wait_for(self, **counts):
        """Waits until the counts have these values."""
        deadline = time.monotonic() + 10
        while True:
            told = self.told()
            if all(told[1][name] >= n for name, n in counts.items()):
                assert {name: told[1][name] for name in counts} == counts, (told, counts)
                return told
            assert time.monotonic() < deadline, (told, counts)
            time.sleep(0.02)


def fields(text):
    return {name: float(value)
            for name, value in re.findall(r'([a-z-]+)=\(\w+\)([-\d.e+]+)', text)}


@test
def reports_keep_a_session_alive_and_silence_ends_it():
    with Served(timeout=2) as server:
        for port in 'rtcp', 'rtp':
            with Reader(server, UNICAST) as reader, Reader(server, UNICAST) as silent:
                by = getattr(reader, port)
                while f'removed {silent.session}' not in server.lines:
                    reader.send_report(report(reader.own), by)
                    time.sleep(0.02)
                assert reader.alive()
                server.wait_for_line(f'removed {re.escape(reader.session)}', 10)


@test
def reports_of_strangers_and_malformed_ones_keep_no_session_alive():
    with Served(timeout=2) as server:
        with Reader(server) as reader, Reader(server) as silent, udp_socket() as stranger:
            while f'removed {silent.session}' not in server.lines:
                reader.send_report(report(reader.own))
                silent.send_report(report(silent.own), stranger)
                silent.send_report(report(silent.own)[:-1])
                silent.send_report(report(silent.own) + goodbye(silent.own))
                time.sleep(0.02)
            counts = reader.told()[1]
            assert counts['strangers'] > 0 and counts['malformed'] > 0, counts


@test
def the_last_report_of_each_reader_is_returned():
    with Served() as server, Reader(server) as one, Reader(server) as other:
        assert one.told()[0] == {} and one.stored() == 0
        ssrc, _ = one.sender_report()
        one.send_report(report(one.own, block(ssrc, 64, -2, 0x10005, 90)))
        other.send_report(report(other.own, block(ssrc ^ 1, 1, 1), block(ssrc, 128, 77, 9, 1)))
        told = one.wait_for(reports=2)[0]
        assert told.pop('age') >= 0
        assert told == {'reports': 1, 'ssrc': ssrc, 'fraction-lost': 0.25, 'packets-lost': -2,
                        'highest-seq': 0x10005, 'jitter': 90}, told
        told = other.told()[0]
        assert told['fraction-lost'] == 0.5 and told['packets-lost'] == 77, told
        # A report about another stream changes only the count.
        one.send_report(report(one.own, block(ssrc ^ 1, 255, 5)))
        told = one.wait_for(reports=3)[0]
        assert told['reports'] == 2 and told['fraction-lost'] == 0.25, told
        assert one.stored() == other.stored() == 1
        one.send_report(report(one.own, block(ssrc, 64)))
        one.wait_for(reports=4)
        assert one.stored() == 2 and other.stored() == 1


@test
def the_round_trip_needs_a_known_sender_report():
    with Served() as server, Reader(server) as reader:
        ssrc, middle = reader.sender_report()
        came = time.monotonic()
        for lie in block(ssrc, last_sr=middle ^ 1), block(ssrc, last_sr=middle, delay_sr=1 << 31):
            reader.send_report(report(reader.own, lie))
        assert 'round-trip' not in reader.wait_for(reports=2)[0]
        at_least = time.monotonic() - came
        reader.send_report(report(reader.own, block(ssrc, last_sr=middle)))
        round_trip = reader.wait_for(reports=3)[0]['round-trip'] / 1e9
        assert round_trip > at_least - 0.00001, (round_trip, at_least)


@test
def reports_create_no_sources_in_the_rtp_session():
    with Served() as server, Reader(server, UNICAST) as reader, udp_socket() as stranger:
        before = reader.told()[2]
        for n in range(20):
            reader.send_report(report(1000 + n))
            reader.send_report(sender_report(2000 + n))
            reader.send_report(report(3000 + n), stranger)
            reader.send_report(sender_report(4000 + n), stranger)
            reader.send_report(report(5000 + n) + picture_loss(5000 + n, 1), stranger)
            reader.send_report(b'\x80' * n, stranger)
        counts, sources = reader.wait_for(reports=40, strangers=60, malformed=20, passed=0)[1:]
        assert sources == before, (before, sources, counts)


@test
def feedback_goes_to_gst_rtsp_server():
    if RELAY:
        raise Skip('a relay media has no RTP session that feedback could go to')
    with Served() as server, Reader(server) as reader, udp_socket() as stranger:
        sources = reader.told()[2]
        ssrc, _ = reader.sender_report()
        # Feedback after a report, or alone.
        reader.send_report(report(1, block(ssrc)) + picture_loss(1, ssrc))
        reader.send_report(picture_loss(1, ssrc))
        reader.wait_for(reports=1, passed=2)
        # If multicast is allowed, RTCP from any address.
        reader.send_report(report(2, block(ssrc)), stranger)
        reader.wait_for(strangers=1)
        while reader.told()[2] < sources + 2:
            time.sleep(0.02)


@test
def contents_with_wrong_lengths_do_not_reach_the_rtp_session():
    if RELAY:
        raise Skip('a relay media has no RTP session')
    with Served() as server, Reader(server) as reader, udp_socket() as stranger:
        before = reader.told()[2]
        ssrc, _ = reader.sender_report()
        endless = packet(1, 202, struct.pack('>I', 9) + b'\x01\xffab')
        wrong = (report(8000) + picture_loss(8000, ssrc) + endless,
                 report(8001) + packet(1, 203, struct.pack('>I', 8001) + b'\xffbye')
                 + picture_loss(8001, ssrc),
                 report(8002) + packet(4, 206, struct.pack('>III', 8002, 0, ssrc)),
                 report(8003) + packet(15, 205, struct.pack('>IIII', 8003, ssrc, 0xffff, 1)),
                 report(8004) + packet(0, 204, struct.pack('>I', 8004)))
        for data in wrong:
            for by in reader.rtcp, stranger:
                reader.send_report(data, by)
        sources = reader.wait_for(reports=len(wrong), strangers=len(wrong), passed=0)[2]
        assert sources == before, (before, sources)


@test
def a_keyframe_request_goes_upstream():
    if not RELAY:
        raise Skip('the RTP session of another media handles the requests')
    with Served() as server, Reader(server) as reader, udp_socket() as stranger:
        ssrc, _ = reader.sender_report()
        reader.send_report(picture_loss(1, ssrc), stranger)
        reader.send_report(picture_loss(1, ssrc ^ 1))
        reader.wait_for(strangers=1, passed=1)
        assert 'asked for a keyframe' not in server.lines
        for at_once in b'', report(1, block(ssrc)):
            start = len(server.lines)
            reader.send_report(at_once + picture_loss(1, ssrc))
            server.wait_for_line('asked for a keyframe', 5, start)


@test
def a_keyframe_request_over_tcp_goes_upstream():
    if not RELAY:
        raise Skip('embed.py tests that of another media')
    with Served() as server, Rtsp(server.port) as reader:
        url = f'rtsp://127.0.0.1:{server.port}{ONE}'
        assert reader.request('SETUP', f'{url}/stream=0',
                              {'Transport': 'RTP/AVP/TCP;unicast;interleaved=4-5'})[0] == 200
        assert reader.request('PLAY', url)[0] == 200
        while True:
            channel, data = reader.frame()
            if channel == 5 and data[1] == 200:
                break
        ssrc = struct.unpack('>I', data[4:8])[0]
        for n in range(3):
            start = len(server.lines)
            reader.send_frame(5, report(1, block(ssrc)) + picture_loss(1, ssrc))
            server.wait_for_line('asked for a keyframe', 5, start)


@test
def sender_reports_count_the_packets():
    if not RELAY:
        raise Skip('the reports of an RTP session are not about a certain packet')
    with Served() as server, Reader(server) as reader:
        packets = [reader.rtp.recv(2000)]
        while True:
            data = reader.rtcp.recv(2000)
            if data[1] == 200 and struct.unpack('>I', data[20:24])[0] > 1:
                break
        ssrc, _, timestamp, n, octets = struct.unpack('>IQIII', data[4:28])
        assert ssrc == struct.unpack('>I', packets[0][8:12])[0]
        first = struct.unpack('>H', packets[0][2:4])[0]
        while struct.unpack('>I', packets[-1][4:8])[0] != timestamp:
            packets.append(reader.rtp.recv(2000))
        last = struct.unpack('>H', packets[-1][2:4])[0]
        # The reader may have missed packets from before its PLAY.
        assert n >= (last - first & 0xffff) + 1, (n, first, last)
        assert octets >= sum(len(packet) - 12 for packet in packets), (octets, n, len(packets))


class Described(Reader):
    """Asks for the description, `.sdp`, before it plays."""

    def play(self):
        self.sdp = self.request('DESCRIBE', self.url)[2].decode()
        super().play()


@test
def a_description_has_the_cname_of_the_reports():
    with Served() as server, Described(server) as reader:
        body = reader.sdp
        ssrc, cname = re.search(r'^a=ssrc:(\d+) cname:(\S+)', body, re.M).groups()
        while (data := reader.rtcp.recv(2000))[1] != 200:
            pass
        assert struct.pack('>I', int(ssrc)) == data[4:8], (body, data)
        assert bytes([1, len(cname)]) + cname.encode() in data[28:], (body, data)
        assert not re.search('WARNING|CRITICAL', server.output()), server.output()


@test
def threads_of_a_relay_media_are_only_those_of_its_elements():
    if not RELAY:
        raise Skip('another media has threads for RTCP')
    with Served() as server, Reader(server):
        names = set(thread_names(server.pid).values())
        assert 'weir-media' in names, names
        assert not any(re.match('rtpsession|udpsrc|appsrc', name) for name in names), names


@test
def a_media_is_made_again_and_gives_everything_back():
    with Served() as server:
        for n in range(12):
            with Reader(server) as reader:
                reader.rtp.settimeout(10)
                reader.rtp.recv(2000)
                assert reader.request('PAUSE', reader.url)[0] == 200
                assert reader.request('PLAY', reader.url)[0] == 200
                reader.rtp.recv(2000)
                if n % 4 == 0:
                    reader.rtcp.recv(2000) # the first report takes some seconds
                reader.tear_down()
            if n == 2:
                before = server.n_descriptors()
        deadline = time.monotonic() + 10
        while server.n_descriptors() > before:
            assert time.monotonic() < deadline, (before, server.n_descriptors())
            time.sleep(0.02)


@test
def a_reader_can_change_its_ports_and_play_again():
    with Served() as server, Reader(server) as reader, Reader(server) as other:
        ssrc, _ = reader.sender_report()
        for n in range(3):
            reader.tear_down()
            reader.bind(free_udp_pair())
            reader.set_up()
            old = reader.rtcp.dup()
            reader.bind(free_udp_pair())
            reader.play()
            reader.send_report(report(1, block(ssrc)), old)
            reader.send_report(report(1, block(ssrc)))
            assert reader.wait_for(reports=n + 1, strangers=n + 1)[0]['reports'] == 1
            old.close()
        other.send_report(report(1, block(ssrc)))
        assert other.wait_for(reports=4)[0]['reports'] == 1


@test
def the_newest_of_two_readers_with_one_address_counts():
    with Served() as server, Reader(server) as old, Reader(server) as new:
        ssrc, _ = old.sender_report()
        new.tear_down()
        new.bind((old.rtp.dup(), old.rtcp.dup()))
        new.play()
        old.send_report(report(1, block(ssrc)))
        assert new.wait_for(reports=1)[0]['reports'] == 1 and old.told()[0] == {}
        new.tear_down()
        # The response to TEARDOWN comes before the reader is removed.
        while not old.told()[0]:
            old.send_report(report(1, block(ssrc)))
        assert old.told()[1]['strangers'] == 0


@test
def readers_come_and_go_while_reports_arrive():
    with Served() as server, Reader(server) as reader:
        for n in range(60):
            with Reader(server) as guest:
                by = guest.rtcp.dup()
                for _ in range(20):
                    guest.send_report(report(n), by)
                if n % 2:
                    guest.tear_down()
            for _ in range(20):
                guest.send_report(report(n), by)
            by.close()
        ssrc, _ = reader.sender_report()
        while not reader.told()[0]:
            # The reports before may have filled the server's socket buffer.
            reader.send_report(report(1, block(ssrc)))
            time.sleep(0.02)


@test
def reports_work_over_ipv4_and_ipv6():
    try:
        Served(address='::').stop()
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(('::1', 0))
    except (AssertionError, OSError):
        raise Skip('this machine has no IPv6') from None
    with Served(address='::') as server:
        for n, host in enumerate(('127.0.0.1', '::1')):
            with Reader(server, host=host) as reader:
                ssrc, _ = reader.sender_report()
                reader.send_report(report(1, block(ssrc)))
                told = reader.wait_for(reports=1, strangers=0)
                assert told[0]['reports'] == 1, told


if __name__ == '__main__':
    run()
