# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of the AMPS testbed, and the benches that repeat them."""

from papers import Figure, Paper

# What figures 3 and 4 name, and the groups of amps_functions.py.
GROUPS = (
    ('network protocols', 'kernel: network'), ('copies in the kernel', 'kernel: copies'),
    ('system calls', 'kernel: system calls'), ('receiving in the proxy', 'the proxy: receiving'),
    ('pipes', 'the proxy: pipes (the window)'), ('sending in the proxy', 'the proxy: sending'),
    ('GStreamer and GLib', 'GStreamer and GLib'), ('libc', 'libc and other libraries'),
)


def functions(load):
    return 'of the proxy\'s CPU time: ' + ', '.join(
        f'{what} {{{group}; {load}; part; .0f}} %' for what, group in GROUPS) + '.'


def gaps(case):
    return (f'mean frame gap {{{case}; rtsp-proxy; frame; .1f}} ms, at most {{{case}; rtsp-proxy; longest; .0f}}; '
            f'a buffer of {{{case}; rtsp-proxy; buffer; .1f}} ms is enough; start-up '
            f'{{{case}; rtsp-proxy; start; .1f}} ms.')


def interval(case, seconds):
    return ', '.join(
        f'{{{case}; {seconds} s; {key}; {form}}} {what} instead of {{{case}; none; {key}; {form}}}'
        for key, form, what in (('upstreams', '.0f', 'upstream sessions'), ('cpu', '.1f', '% of a processor'),
                                ('start', '.0f', 'ms until the first packet'))) + '.'


PAPER = Paper('AMPS', '''X. Zhang, M. K. Bradshaw, Y. Guo, B. Wang, J. Kurose, P. Shenoy, D. Towsley, "AMPS: A Flexible,
Scalable Proxy Testbed for Implementing Streaming Services", UMass Computer Science Technical Report
2004-08. The proxy was a Pentium 4 of 1.8 GHz.''', (
    Figure(
        'Figure 3', 'CPU time by function, 600 streams of V300', 'amps-functions',
        'the kernel\'s network protocols take most of all, then receiving packets in the proxy; 55 % of the '
        'CPU is busy.',
        functions('600 streams'),
        'what the kernel does to receive a packet is charged to its sender on this network inside one '
        'machine.'),
    Figure(
        'Figure 4', 'CPU time by function, with 5 clients a second', 'amps-functions',
        'network protocols 20 %, receiving 19 %, copies in the kernel 7 %, copies in the proxy 6 %, pipes, '
        'system calls and threads 5 % each.',
        (functions('5 clients a second'), '20 clients a second for 30 s each, ' + functions('20 clients a second'))),
    Figure(
        'Figure 5', 'dispatchers of requests compared', 'amps-dispatchers',
        'with 20 clients a second, 54.07 % of the CPU with select, 34.37 % if the dispatcher sleeps 15 ms after '
        'each round, and 3.81 % if it polls each connection every 15 ms, which delays answers by 30 ms at most.',
        '{20; select; cpu; .1f} % of a processor with select, {20; select, then 15 ms of sleep; cpu; .1f} % with '
        'sleep, {20; polling every 15 ms; cpu; .1f} % by polling, {20; epoll; cpu; .1f} % with epoll and '
        '{20; a main loop of GLib; cpu; .1f} % in a main loop of GLib; half of the requests are '
        'answered within {20; select; p50; .1f}, {20; select, then 15 ms of sleep; p50; .1f}, '
        '{20; polling every 15 ms; p50; .1f}, {20; epoll; p50; .1f} and {20; a main loop of GLib; p50; .1f} ms.',
        'the dispatchers alone, whose requests cost nothing. Polling asks 2400 connections 67 times a second for 80 '
        'requests, and a system call costs as much for a connection that has none. The paper had no epoll, in which '
        'the loops of rtsp-proxy wait.'),
    Figure(
        'Figure 6', 'threads in use when the server answers late', 'amps-threads',
        '20 clients a second: 15 threads are enough up to 120 ms, 25 threads for 95 % of the requests at '
        '300 ms.',
        '{20; rtsp-proxy; threads; .0f} threads at 20 ms and {300; rtsp-proxy; threads; .0f} at 300 ms, where '
        '{300; rtsp-proxy; waiting; .1f} requests wait on average and {300; rtsp-proxy; most; .0f} at most; a '
        'session is set up in {20; rtsp-proxy; set_up; .0f} and {300; rtsp-proxy; set_up; .0f} ms.',
        'no request holds a thread.'),
    Figure(
        'Figure 6, curves', 'how many requests wait for the server at a time', 'amps-waiting',
        'each of them held a thread: 15 threads are never all in use at 120 ms.',
        'at 300 ms, more than 24 requests wait for {24; 300 ms; part; .1f} % of the time; at 120 ms, more than '
        '14 for {14; 120 ms; part; .1f} %.',
        'a session asks its server several things in turn, and each is answered late.'),
    Figure(
        'Figure 7', 'receiving by polling and by select', 'ingest',
        'polling takes up to 30 % less CPU time, and as much above 700 streams.',
        'with 1000 streams {1000; tick 2 ms; ns; .0f} ns a packet when all sockets are read every 2 ms, and '
        '{1000; recvmsg; ns; .0f} ns when each packet wakes the thread; with 100 streams '
        '{100; tick 2 ms; ns; .0f} and {100; recvmsg; ns; .0f} ns.',
        'epoll in the place of select; polling takes less with 1000 streams, too.',
        'ingest-the-cost-of-receiving'),
    Figure(
        'Figure 8', 'rounds and micro-rounds of sending', 'amps-rounds',
        'micro-rounds take up to 30 % less CPU time than rounds of 15 ms, and carry a third more streams.',
        'for 2000 streams {2000; of 15 ms; cpu; .1f} % of a processor in rounds of 15 ms and '
        '{2000; of 33 ms, in two micro-rounds; cpu; .1f} % in micro-rounds, '
        '{2000; none: each packet at its time; cpu; .1f} % if each packet leaves at its time.',
        'pacers alone, of streams of 1 Mb/s, which one thread feeds.'),
    Figure(
        'Figure 9 (a)', 'CPU time by number of streams', 'amps-streams',
        'at the same data rate, few large streams take less CPU time than many small ones.',
        '{515; V10; cpu; .1f} % of a processor for 515 streams of V10, which are 6.4 Mb/s, and '
        '{70; V1024; cpu; .1f} % for 70 of V1024, which are 74 Mb/s; {2060; V10; cpu; .1f} % for 2060, and '
        '{280; V1024; cpu; .1f} % for 280.'),
    Figure(
        'Figure 9 (b)', 'CPU time by packet rate', 'amps-packets',
        'the number of streams counts beside the number of packets.',
        '{20600; V10; cpu; .1f} % for 20,600 packets a second of V10, {21300; V300; cpu; .1f} % for 21,300 of '
        'V300, {33600; V1024; cpu; .1f} % for 33,600 of V1024.'),
    Figure(
        'Figure 10', 'packet and frame gaps with 5 clients a second', 'amps-gaps',
        'mean frame gap 66.67 ms, at most 144.07 ms; a buffer of 52 ms is enough; start-up 4.18 s.',
        (gaps('5/s x 120 s'), '20 clients a second for 30 s each: ' + gaps('20/s x 30 s')),
        'the paper\'s server and proxy begin to send one and two seconds after a request; here nobody waits.'),
    Figure(
        'Figure 10, histogram', 'how often each gap is seen', 'amps-histogram',
        'most frames come 60 to 70 ms after the one before.', '',
        'the two packets of a frame come together.'),
    Figure(
        'Table 2', 'the largest number of streams', 'amps-maximum',
        'V10 2060, V100 1580, V300 710, V1024 280, each with the CPU full.',
        'V10 {V10; rtsp-proxy; streams; .0f}, V100 {V100; rtsp-proxy; streams; .0f}, V300 '
        '{V300; rtsp-proxy; streams; .0f}, V1024 {V1024; rtsp-proxy; streams; .0f}, with '
        '{V10; rtsp-proxy; cpu; .0f}, {V100; rtsp-proxy; cpu; .0f}, {V300; rtsp-proxy; cpu; .0f} and '
        '{V1024; rtsp-proxy; cpu; .0f} % of a processor.',
        'the origin and the readers take the rest of the same machine, so the proxy is not full.',
        'relay-many-streams'),
    Figure(
        'Section 5.2', 'interval caching', 'interval',
        'with an interval of 20 s, 13 upstream sessions instead of 600, 5.83 % of the CPU instead of 56.88, '
        'start-up 0.43 s instead of 4.16.',
        (interval('5/s x 120 s', 20), '2 clients a second for 30 s, an interval of 5 s: ' + interval('2/s x 30 s', 5)),
        'nobody waits here for the server\'s and the proxy\'s rounds.',
        'interval-a-stored-titles-upstream-sessions'),
))
