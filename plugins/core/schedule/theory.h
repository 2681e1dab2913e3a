// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The mean cost of the schemes for Poisson arrivals, in streams: 1 is the rate of one stream of the
// title. Lengths are in s, arrival rates in clients a second.
//
// Threshold patching ("controlled multicast": L. Gao, D. Towsley, "Supplying instantaneous
// video-on-demand services using controlled multicast", ICMCS 1999): a client that comes within the
// threshold T after the last complete stream joins that stream, and gets the part that it missed by
// unicast. A later client gets a new complete stream.

// Returns the threshold with the least cost, (sqrt (2 L rate + 1) - 1) / rate, at most L; L for a
// rate of 0.
double weir_patching_threshold (double length, double rate);

// Returns the cost of patching with threshold `threshold`: complete streams of L, and patches of up
// to T, in each cycle of T + 1 / rate on average. The first `cached` s of the title are in memory,
// and do not count; with 0 this is the sending rate.
double weir_patching_streams (double length, double rate, double threshold, double cached);

// Returns the arrival rate at which patching costs `streams`: below it patching costs less than a
// broadcast of this cost, above it more. `threshold` 0 is the best one for each rate. Returns 0 if
// patching costs as much at any rate.
double weir_patching_crossing (double length, double threshold, double cached, double streams);
