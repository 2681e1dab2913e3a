# SPDX-License-Identifier: LGPL-2.1-or-later
"""Transport streams that no multiplexer should make, from a socket, in RTP and in files."""

import os
import random
import socket
import struct
import tempfile
import threading

from proc import free_port, known_criticals
from proxy import QUICK, Proxy
from tap import run, test
from tspackets import CLOCK_PID, STREAMS, mutated, packet, packets_of, whole

# tsdemux of GStreamer 1.22, if two clock references have the same time; gst-launch-1.0 prints it, too.
SAME_TIME = r"GStreamer-CRITICAL .*_gst_util_uint64_scale: assertion 'denom != 0' failed"


def datagrams(packets):
    return [b''.join(packets[n:n + 7]) for n in range(0, len(packets), 7)]


def send(port, packets, rtp=False):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for seq, data in enumerate(datagrams(packets)):
            head = struct.pack('>BBHII', 0x80, 33, seq, seq * 900, 1) if rtp else b''
            sender.sendto(head + data, ('127.0.0.1', port))


def fed(packets, rtp=False):
    """Checks that the proxy survives the packets, which it has read when this returns."""
    port = free_port()
    uri = f'rtp://127.0.0.1:{port}?encoding-name=MP2T' if rtp else f'udp://127.0.0.1:{port}'
    with Proxy({'/cam': {'upstream': uri, **QUICK}}) as proxy:
        answers = []
        asking = threading.Thread(target=lambda: answers.append(proxy.ask('DESCRIBE')[0]))
        asking.start()
        while asking.is_alive():
            send(port, packets, rtp)
            asking.join(0.2)
        proxy.check_alive()
        return answers


@test
def the_proxy_survives_broken_streams_from_a_socket():
    for name, packets in STREAMS.items():
        try:
            assert fed(packets), name
        except AssertionError as error:
            raise AssertionError(name) from error


@test
def the_proxy_survives_broken_streams_in_rtp():
    assert fed(STREAMS['no time'], rtp=True)


def described(streams):
    """Returns the status of DESCRIBE for files with these contents. The proxy must survive."""
    with tempfile.TemporaryDirectory() as folder:
        for n, stream in enumerate(streams):
            with open(os.path.join(folder, f'{n}.ts'), 'wb') as file:
                file.write(stream)
        with known_criticals(SAME_TIME), Proxy({'/films': f'file://{folder}/'}) as proxy:
            statuses = [proxy.ask('DESCRIBE', f'/films/{n}.ts', timeout=30)[0]
                        for n in range(len(streams))]
            proxy.check_alive()
    return statuses


def at_any_place(packets):
    """Yields streams with so much other data that the demultiplexer's reads cut the head in
    question."""
    filler = packet(0x1fff, b'\xff' * 184)
    clock = struct.pack('>BHBBB', 0x47, CLOCK_PID, 0x20, 183, 0x10) + bytes(6) + b'\xff' * 176
    for shift in (0, 1, 100, 170, 178, 180, 183, 184, 185, 186, 187):
        yield (b'\0' * shift + b''.join(packets[:2]) + filler * 96 + b''.join(packets[2:])
               + filler * 500)
        yield b'\0' * shift + clock * 5 + b''.join(packets[:2]) + filler * 92 + b''.join(packets[2:])


@test
def the_proxy_survives_broken_titles():
    described([b''.join(packets) * times for packets in STREAMS.values() for times in (1, 400)])


@test
def the_proxy_survives_broken_titles_read_in_pieces():
    described(list(at_any_place(STREAMS['no time'])))


@test
def the_proxy_survives_a_broken_clip():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'clip.ts')
        with open(path, 'wb') as file:
            file.write(b''.join(STREAMS['no time']) * 400)
        with Proxy({'/cam': {'upstream': f'file://{path}', **QUICK}}) as proxy:
            proxy.ask('DESCRIBE')
            proxy.check_alive()


@test(timeout=240)
def the_proxy_survives_randomly_broken_titles():
    seed = int(os.environ.get('WEIR_SEED', random.randrange(2 ** 32)))
    print(f'# WEIR_SEED={seed}', flush=True)
    chance = random.Random(seed)
    seeds = [packets_of(whole())[:300], *STREAMS.values()]
    described([b''.join(mutated(chance.choice(seeds), chance))
               for _ in range(int(os.environ.get('WEIR_TS_RUNS', '60')))])


if __name__ == '__main__':
    run()
