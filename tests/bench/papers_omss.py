# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of the one-to-many relay, and the benches that repeat them."""

from papers import Figure, Paper

SECTION = 'omss-the-experiments-of-the-one-to-many-relay'


def ns(case, *ways):
    return ', '.join(f'{{{case}; {way}; ns; .0f}} by {name}' for way, name in ways)


BULK = ('daemon', 'the daemon'), ('engine', 'fanoutsink')
SHARED = ('zerocopy', 'MSG_ZEROCOPY'), ('splice', 'splice'), ('sendfile', 'sendfile')


def copies(transport, way):
    return '; '.join(f'{{{size} {transport}; connected; ns; .0f}} ns a packet with a copy and '
                     f'{{{size} {transport}; {way}; ns; .0f}} without at {size} bytes'
                     for size in (100, 200, 1400))


PAPER = Paper('OMSS', '''"One-to-Many Streaming Splicing", IEEE MultiMedia. The relay was an AMD Athlon 64 X2 of 2.1 GHz with
Linux 2.6.32, and a MIPS of 180 MHz with Linux 2.4.''', (
    Figure(
        'Figure 6a', 'CPU time of a relay over UDP by number of readers', 'omss-bulk',
        'the relay in the kernel takes 56 % less than the daemon.',
        'ns a packet: ' + '; '.join(f'at {n} readers ' + ns(f'{n} UDP', *BULK, ('kernel', 'its kernel path'))
                                    for n in (1000, 4000)) + '.', '', SECTION),
    Figure(
        'Figure 6b', 'CPU time of a relay over TCP by number of readers', 'omss-bulk',
        'the relay in the kernel takes 59 % less than the daemon.',
        'ns a packet: ' + '; '.join(f'at {n} readers ' + ns(f'{n} TCP', *BULK) for n in (1000, 4000)) + '.',
        'over TCP, fanoutsink sends as the daemon does: a system call for each reader and packet.', SECTION),
    Figure(
        'Figure 6b, without copies', 'what Linux has in the place of the paper\'s sendpage', 'omss-tcp',
        'the relay shares pages between its sockets.',
        'ns a packet: ' + '; '.join(f'at {n} readers ' + ns(f'{n} TCP', ('daemon', 'the daemon'), *SHARED)
                                    for n in (1000, 4000)) + '.',
        'the cost of a packet is that of the system call and of TCP, not of the copy. A program on a sockmap hands a '
        'packet to one socket, and Linux 6.18 refuses one that makes copies ("program of this type cannot use helper '
        'bpf_clone_redirect"), so a relay to many cannot be made of it.'),
    Figure(
        'Figures 6a and 6b, capacity', 'the most readers', 'omss-capacity',
        'over UDP 4000 readers instead of the daemon\'s 2200, over TCP 3500 instead of 2000.',
        'over UDP {UDP; daemon; most; .0f} by the daemon, {UDP; engine; most; .0f} by fanoutsink and '
        '{UDP; kernel; most; .0f} by its kernel path; over TCP {TCP; daemon; most; .0f} and {TCP; engine; most; .0f}.',
        'no line of 1 Gb/s is in the way; the search is coarse, and ends at 40,000 and 12,000 readers.'),
    Figure(
        'Figure 6c', 'an embedded machine', 'omss-small',
        'over TCP the daemon serves 45 readers, the relay in the kernel 85, and 80 if it copies the payload.',
        'with 5 % of a processor, over TCP {TCP; daemon; most; .0f} by the daemon and {TCP; engine; most; .0f} by '
        'fanoutsink; over UDP {UDP; daemon; most; .0f}, '
        '{UDP; engine; most; .0f} and, by the kernel path, {UDP; kernel; most; .0f}.',
        'a part of a fast processor, whose network device computes the checksums.'),
    Figure(
        'Figure 7', 'shared payload by its size, 800 readers', 'omss-copies',
        'sharing the payload takes less CPU time than copying it above 200 bytes over UDP, and above 100 '
        'bytes over TCP.',
        'over UDP, by MSG_ZEROCOPY, ' + copies('UDP', 'zerocopy') + '; over TCP, by splice, '
        + copies('TCP', 'splice') + '.',
        'in user space, where both make a system call for each reader, and at 50 packets a second for all '
        'sizes; over TCP inside one machine, the kernel copies what MSG_ZEROCOPY sends when it arrives.'),
    Figure(
        'Figure 7, all ways', 'ways of sending by payload size', 'omss-payload',
        'the same test.',
        'ns a packet: at 200 bytes over UDP ' + ns('200 UDP', *BULK) + ', at 1400 bytes ' + ns('1400 UDP', *BULK)
        + '.', 'the ways differ in more than the copy.', SECTION),
    Figure(
        'Drop policies', 'left for later work', 'omss-drops', 'not measured.',
        'beside four slow readers, {fast; slowest; decodable; .0f} % of the frames of fast readers can be '
        'decoded with `slowest`, and {fast; tail; decodable; .0f} % with `tail`.', '', SECTION),
    Figure(
        'Task classes', 'priorities of sessions under overload', 'omss-priority',
        'workers take tasks from the class of the highest priority first; no figure.',
        'with 60 % of the CPU time that all take, readers of a mount of `priority: 0` get {60; 0; delivered; .0f} % of '
        'the packets, and those of one of `priority: 7` {60; 7; delivered; .0f} %; with more than they take, '
        '{150; 0; delivered; .0f} and {150; 7; delivered; .0f} %.',
        'a reader who is too late gets fewer frames, and nobody waits for him.'),
))
