// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The relays of omss_bench.c that do without Weir: a loop that receives a packet and sends it to
// each reader in turn. The way says how:
//
//     daemon    one system call that copies the packet: sendto or writev
//     connected the same with send, over UDP to a connected socket for each reader
//     zerocopy  MSG_ZEROCOPY: the kernel sends from the relay's memory, and says when it has done
//     splice    the packet's page goes into a pipe; tee and splice put it into each socket
//     sendfile  the packet is in a file in memory; sendfile puts its page into each socket

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct OmssDaemon OmssDaemon;

bool omss_daemon_knows (const char *way);

// `connections`: those of TCP readers, which the daemon does not close, or NULL: UDP readers are at
// the ports from that of `first` on.
OmssDaemon *omss_daemon_new (
    const char *way, const int *connections, const struct sockaddr_in *first, int readers);

// Where the next packet of up to 2048 bytes goes.
uint8_t *omss_daemon_room (OmssDaemon *self);

// Sends the packet in the room. Returns to how many readers.
int omss_daemon_send (OmssDaemon *self, size_t len);

// How many packets the kernel has copied although it was asked not to.
uint64_t omss_daemon_copied (const OmssDaemon *self);
