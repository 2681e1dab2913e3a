# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of the storage server and of Toast, and the benches that repeat them."""

from papers import Figure, Paper

STORE = 'store-streams-from-many-disks'
SWARM = 'swarm-viewers-who-help-an-origin'
SESSIONS = 'swarm_sessions-the-same-with-real-sessions'
RATIO = ('the model and the measurement: {25, 8; model; streams; .0f} and {25, 8; measured; streams; .0f} streams '
         'of 25 Mb/s from 8 disks, {6, 1; model; streams; .0f} and {6, 1; measured; streams; .0f} of 6 Mb/s '
         'from one.')

PAPER = Paper('Storage server and Toast', '''Y. R. Choe, "Design and Implementation of a Resource-Efficient Storage Server for VoD", PhD dissertation,
Purdue University, 2007.''', (
    Figure(
        'Figure 3.2', 'streams by bit rate and disks, SATA-1', 'store-model',
        'the model is 11 % off on average.', RATIO,
        'the disks are imitated, so that nothing but the model\'s terms takes time.', STORE),
    Figure(
        'Figure 3.2, contention', 'disks that hinder each other on one bus', 'store-contention',
        'a disk transfers 525 Mb/s alone, 431 Mb/s beside 3 others and 458 Mb/s beside 5, two of them on another '
        'controller; with these rates, the model agrees.',
        '{25, 4; measured; streams; .0f} streams of 25 Mb/s from 4 disks and {25, 6; measured; streams; .0f} from 6, '
        'where the model has {25, 4; model; streams; .0f} and {25, 6; model; streams; .0f} with these rates, and '
        '{25, 4; model, each disk alone; streams; .0f} and {25, 6; model, each disk alone; streams; .0f} without.',
        'the imitated disks have the rates that the paper measured, and no bus.'),
    Figure(
        'Figures 3.2 and 3.3, over HTTP', 'streams as players see them', 'store-http',
        'players on other machines, over HTTP; a number counts if nobody starves.',
        'rtsp-proxy admits {25, 1; rtsp-proxy; streams; .0f} players of 25 Mb/s to one disk and '
        '{6, 1; rtsp-proxy; streams; .0f} of 6 Mb/s, where the model has {25, 1; model; streams; .0f} and '
        '{6, 1; model; streams; .0f}; {25, 1; rtsp-proxy; late; .0f} and {6, 1; rtsp-proxy; late; .0f} bytes came late.',
        'the paper tries out how many players there can be; rtsp-proxy leaves a tenth of the disks\' time free, and '
        'refuses further ones. Server and players are on one machine.'),
    Figure(
        'Figure 3.3', 'streams by bit rate and disks, SATA-300', 'store-sata300',
        '290 streams of 6 Mb/s and 74 of 25 Mb/s from 8 disks; the lines carry 1.85 Gb/s.',
        '{6, 8; measured; streams; .0f} streams of 6 Mb/s and {25, 8; measured; streams; .0f} of 25 Mb/s from 8 '
        'disks, where the model has {6, 8; model; streams; .0f} and {25, 8; model; streams; .0f}, and '
        '{6, 8; model with the line; streams; .0f} and {25, 8; model with the line; streams; .0f} if the line is '
        'counted.', 'no line is in the way.'),
    Figure(
        'Section 3.1', 'what striping costs, and how many disks a number of streams needs', 'store-sizing',
        'a block that is striped over several disks costs an access on each, so fewer streams play.',
        'of 8 disks by the model, 6 Mb/s: {1; 6 Mb/s; streams; .0f} streams if a block is on one disk, '
        '{8; 6 Mb/s; streams; .0f} if it is on 8; 1000 streams need {1; 6 Mb/s; disks; .0f} and '
        '{8; 6 Mb/s; disks; .0f} disks.', 'the model only: the block store never stripes a block.'),
    Figure(
        'Figure 3.4', 'streams of 1 Mb/s', 'store-model',
        'threads end at about 400 streams for each processor.',
        '{1, 8; measured; streams; .0f} streams from 8 disks, where the model has {1, 8; model; streams; .0f}.',
        'no stream has a thread.', STORE),
    Figure(
        'Figure 4.2', 'placements, uniform popularity', 'store-policies',
        'naive, RDA and RAID-1 332 to 336 streams, random 288, RAID-0 256.',
        'naive {uniform, within a slice; naive; streams; .0f}, rda {uniform, within a slice; rda; streams; .0f}, '
        'random {uniform, within a slice; random; streams; .0f}.',
        'the paper\'s lines limit the first three; blocks here are read by deadline, so raid0 loses none.',
        STORE),
    Figure(
        'Figure 4.3', 'placements, Zipf 0.5 and 1.0', 'store-policies',
        'naive worst loses nearly 50 %; with 1.0, RDA has more than twice its streams.',
        'with 1.0, rda {Zipf 1.0; rda; streams; .0f} and naive worst {Zipf 1.0; naive worst; streams; .0f}.',
        '', STORE),
    Figure(
        'Figure 4.4', 'one disk overloaded', 'store-overload',
        'naive loses nearly 40 % at 80 %, RAID-1 30 %.',
        'naive loses {80 % more readers; naive; lost; .0f} %, raid1 {80 % more readers; raid1; lost; .0f} %.', '', STORE),
    Figure(
        'Figures 4.5 to 4.7', 'a disk that transfers useless data too', 'store-stutter',
        'RDA has the shortest stoppages, RAID-1 the fewest.',
        'with 100 % useless data and 95 % of the load, rda stops {100 %, 95 %; rda; stoppages; .0f} times for '
        '{100 %, 95 %; rda; longest; .2f} s at most, raid1 {100 %, 95 %; raid1; stoppages; .0f} times for '
        '{100 %, 95 %; raid1; longest; .2f} s at most.',
        'rda reads each block from the disk that will be done with it first, so the sick disk is left out.', STORE),
    Figure(
        'Figure 5.3', 'saved by picker and upload rate', 'swarm-upload',
        'hybrid saves 80 % if viewers send at the title\'s rate, and 45 % at half of it.',
        'simulated, hybrid saves {1.0; hybrid; saved; .0f} and {0.5; hybrid; saved; .0f} %, adaptive '
        '{1.0; adaptive; saved; .0f} and {0.5; adaptive; saved; .0f} %.',
        'with half of the rate, hybrid asks for pieces that come too late.', SWARM),
    Figure(
        'Figure 5.3, with real sessions', '300 viewers of an hour', 'sessions-hour',
        'the same: 300 viewers, one each 36 s, of a title of an hour.',
        ('hybrid saves {1.0, stream; hybrid; saved; .0f} % if viewers send at the title\'s rate, and '
         '{0.5, stream; hybrid; saved; .0f} % at half of it, where the simulation has '
         '{1.0, stream; hybrid; simulated; .0f} and {0.5, stream; hybrid; simulated; .0f} %.',
         'hybrid saves {1.0, stream; hybrid; saved; .0f} % if viewers send at the title\'s rate, where the simulation '
         'has {1.0, stream; hybrid; simulated; .0f} %; an hour lasts a minute.'),
        'over loopback, and at 100 kb/s in the place of 2 Mb/s, for the sake of the disk; takes four hours.', SESSIONS),
    Figure(
        'Section 5.2', 'a seed beside the server', 'swarm-seed',
        'a seed runs in all tests, and what it sends counts as the server\'s; not compared with none.',
        'simulated, hybrid saves {1.0, 0; hybrid; saved; .1f} % without a seed and {1.0, 1; hybrid; saved; .1f} % with '
        'one that sends at the title\'s rate; at half of the viewers\' rate, {0.5, 0; hybrid; saved; .1f} and '
        '{0.5, 1; hybrid; saved; .1f} %.',
        'what a seed sends is not sent by the origin, and is counted all the same, so it makes no difference.'),
    Figure(
        'Section 5.2, with real sessions', 'a seed that serves a title of a block store', 'sessions-seed',
        'the seed has the whole title.',
        'hybrid saves {1.0; 0; saved; .0f} % without a seed and {1.0; 1; saved; .0f} % with one, which sends '
        '{1.0; 1; seed; .0f} % of all and has read the title from the store before.',
        'few viewers of a short title, of which one copy more is some per cent.'),
    Figure(
        'Figure 5.4', 'saved by the window in order', 'swarm-window',
        'a window of 9 to 15 minutes is best.',
        'simulated, {5; hybrid; saved; .0f} % with 5 minutes, {9; hybrid; saved; .0f} with 9, '
        '{15; hybrid; saved; .0f} with 15.', 'the simulation is best at 5 to 9 minutes.', SWARM),
    Figure(
        'Figures 5.5 and 5.6', 'saved by when viewers leave', 'swarm-leaving',
        'hybrid saves 90 % if nobody leaves, and 71 % at half of the rate.',
        'simulated, hybrid saves {1.0, seed; hybrid; saved; .0f} and {0.5, seed; hybrid; saved; .0f} %.', '',
        SWARM),
    Figure(
        'Figure 5.7', 'whom viewers send to', 'swarm-choking',
        'the paper\'s choice for seeds, which does not look at what viewers give, saves less than '
        'tit-for-tat.',
        'simulated, hybrid saves {tit-for-tat; hybrid; saved; .0f} % by tit-for-tat and '
        '{blind; hybrid; saved; .0f} % by the paper\'s choice for seeds, in-order '
        '{tit-for-tat; in-order; saved; .0f} and {blind; in-order; saved; .0f} %.',
        'the simulation finds the contrary; why is not known. libtorrent makes that choice only for viewers who have '
        'all, so `rate-blind` of real sessions sends to all peers in turn.', SWARM),
    Figure(
        'Figure 5.8', 'viewers with a small storage', 'swarm-storage',
        'a storage of 25 % of the title saves less than one of 100 %.',
        'simulated, hybrid saves {25; hybrid; saved; .0f} % with 25 % of the title and '
        '{100; hybrid; saved; .0f} % with all of it.',
        'a viewer here stops asking for what its storage cannot hold.', SWARM),
    Figure(
        'Figure 5.9', 'delays between viewers', 'sessions-latency',
        'delays of 10 ms change what is saved by 2.1 % at most.',
        'adaptive saves {1.0, none; adaptive; saved; .1f} % without delays and {1.0, 10 ms; adaptive; saved; .1f} % with '
        '10 ms each way; at half of the rate, {0.5, none; adaptive; saved; .1f} and {0.5, 10 ms; adaptive; saved; .1f} %.',
        '', SESSIONS),
    Figure(
        'Figures 5.10 and 5.11', 'all traffic', 'sessions-leaving',
        '5 % more traffic than unicast.',
        'hybrid receives {1.0, stream; hybrid; traffic; .0f} % of what is read if viewers send at the title\'s rate, and '
        '{0.5, stream; hybrid; traffic; .0f} % at half of it.', 'the payload only, without tracker and headers.', SESSIONS),
))
