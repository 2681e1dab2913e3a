# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of the one-to-many relay, and the benches that repeat them."""

from papers import Figure, Paper

BULK = '{%s; daemon; ns; .0f} ns a packet by the daemon, {%s; engine; ns; .0f} by fanoutsink'

PAPER = Paper('OMSS', '''"One-to-Many Streaming Splicing", IEEE MultiMedia. The relay was an AMD Athlon 64 X2 of 2.1 GHz with
Linux 2.6.32, and a MIPS of 180 MHz with Linux 2.4.''', (
    Figure(
        'Figure 6a', 'CPU time of a relay over UDP by number of readers', 'omss-bulk',
        'the relay in the kernel takes 56 % less than the daemon, and serves 4000 readers instead of 2200.',
        '1000 readers: ' + BULK % ('1000 UDP', '1000 UDP') + ', {1000 UDP; kernel; ns; .0f} by its kernel '
        'path. 4000 readers: ' + BULK % ('4000 UDP', '4000 UDP') + ', {4000 UDP; kernel; ns; .0f} by its '
        'kernel path.', '', 'omss-the-experiments-of-the-one-to-many-relay'),
    Figure(
        'Figure 6b', 'CPU time of a relay over TCP by number of readers', 'omss-bulk',
        'the relay in the kernel takes 59 % less than the daemon, and serves 3500 readers instead of 2000.',
        '1000 readers: ' + BULK % ('1000 TCP', '1000 TCP') + '. 4000 readers: '
        + BULK % ('4000 TCP', '4000 TCP') + '.',
        'over TCP, fanoutsink sends as the daemon does: a system call for each reader and packet.',
        'omss-the-experiments-of-the-one-to-many-relay'),
    Figure(
        'Figure 6c', 'an embedded machine', None,
        'the daemon serves 45 readers, the relay in the kernel 85, and 80 if it copies the payload.'),
    Figure(
        'Figure 7', 'shared payload by its size, 800 readers', 'omss-payload',
        'sharing the payload takes less CPU time than copying it above 200 bytes over UDP, and above 100 '
        'bytes over TCP.',
        'at 200 bytes over UDP, ' + BULK % ('200 UDP', '200 UDP') + '; at 1400 bytes, '
        + BULK % ('1400 UDP', '1400 UDP') + '.',
        'the ways that are compared differ in more than the copy.',
        'omss-the-experiments-of-the-one-to-many-relay'),
    Figure(
        'Drop policies', 'left for later work', 'omss-drops', 'not measured.',
        'beside four slow readers, {fast; slowest; decodable; .0f} % of the frames of fast readers can be '
        'decoded with `slowest`, and {fast; tail; decodable; .0f} % with `tail`.', '',
        'omss-the-experiments-of-the-one-to-many-relay'),
))
