# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of the proxy for scalable video, and the benches that repeat them."""

from papers import Figure, Paper

SECTION = 'svcproxy-the-experiments-of-a-proxy-for-scalable-video'


def loss(readers):
    return (f'with {readers} readers {{{readers}; kernel=off, 0 ms; lost; .1f}} % in user space and '
            f'{{{readers}; kernel=on, 0 ms; lost; .1f}} % in the kernel, spread over 30 ms '
            f'{{{readers}; kernel=off, 30 ms; lost; .1f}} and {{{readers}; kernel=on, 30 ms; lost; .1f}} %')


PAPER = Paper('SVC proxy', '''B. Snoksrud, "Implementation of an Adaptive Stream Scaling Media Proxy with the data path in the Linux
Kernel", Master thesis, University of Oslo, 2009. The proxy was a Pentium 4 of 3.0 GHz on a network of
100 Mb/s; its path in user space is in Python.''', (
    Figure(
        'Figures 2.6 and 5.1', 'the rate of each layer over time', 'svcproxy-rates',
        'the rate of a stream, and of each of its layers, changes by the moment.',
        'between 2 and 4 s, all layers have {2; all; rate; .0f}, {3; all; rate; .0f} and {4; all; rate; .0f} kb/s '
        'in 200 ms, and the moving average is {2; all; average; .0f}, {3; all; average; .0f} and '
        '{4; all; average; .0f} kb/s.'),
    Figure(
        'Figures 6.1 and 6.2', 'CPU time by number of readers, in user space and in the kernel', 'svcproxy-readers',
        'the path in the kernel takes about a fortieth of the CPU time, and would serve 4800 readers '
        'instead of 840.',
        '{10; kernel=off; cpu; .2f} % of a processor for 10 readers and {120; kernel=off; cpu; .2f} % for 120 in '
        'user space, {10; kernel=on; cpu; .2f} and {120; kernel=on; cpu; .2f} % in the kernel.',
        'the other path is in C, and sends a frame to a reader with one system call.'),
    Figure(
        'Table 6.1', 'context switches a second at 90 readers', 'svcproxy-readers',
        '502 in user space, 108 in the kernel.',
        '{90; kernel=off; switches; .0f} in user space, {90; kernel=on; switches; .0f} in the kernel.',
        'both have a thread that wakes for each frame.'),
    Figure(
        'Figures 6.3 and 6.4', 'packet loss by load, in user space and in the kernel', 'svcproxy-losses',
        'the kernel sends the copies of a packet in a burst, and loses more than user space at the same load.',
        loss(40) + '; ' + loss(160) + '.',
        'a path in user space that is not slow sends bursts, too; spreading them helps both.'),
    Figure(
        'Bursts', 'left for later work', 'svcproxy-bursts', 'not measured.',
        'behind a switch with a queue of 256 packets, {256; 0 ms; lost; .1f} % of the bytes are lost, and '
        '{256; 30 ms; lost; .1f} % if frames are spread over 30 ms; with 1024 packets {1024; 0 ms; lost; .1f} '
        'and {1024; 30 ms; lost; .1f} %.', '', SECTION),
    Figure(
        'Figures 6.5 and 6.6', 'what is delivered by number of readers', 'svcproxy-delivered',
        'adaptation lowers the rate of each reader as readers come, but at 160 readers the proxy sends 40 % '
        'more than the line carries.',
        'on a line for 60 readers, 40 readers get {40; bandwidth; each; .0f} kb/s each, which is '
        '{40; bandwidth; used; .0f} % of the line, and 160 get {160; bandwidth; each; .0f}, {160; bandwidth; used; .0f} %.',
        '', 'adapt-a-line-too-narrow-for-all-layers'),
    Figure(
        'Layers', 'what they cost', 'svcproxy-layers', 'not measured.',
        'all readers choose the same layers, 160 readers: {2.2; kernel=off; cpu; .1f} % of a processor for all '
        'layers and {0.0; kernel=off; cpu; .1f} % for the base layer in user space, {2.2; kernel=on; cpu; .1f} '
        'and {0.0; kernel=on; cpu; .1f} % in the kernel.', '', SECTION),
))
