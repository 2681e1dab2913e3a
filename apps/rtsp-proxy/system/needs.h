// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a configuration needs of the system, if all mounts run and have readers. The configuration
// does not say how fast the streams are and how many readers come; the expectation does.

#include "config/proxy_config.h"

typedef struct {
  guint64 rate;    // bits per second of each mount
  guint64 readers; // of all mounts; EXPECT_DEFAULT: two for each mount, at least 100
} Expectation;

#define EXPECT_RATE 4000000
#define EXPECT_DEFAULT G_MAXUINT64

// Reads "RATE" or "RATE,READERS", such as "8M,500". Returns FALSE if it is neither.
gboolean expectation_parse (const gchar *text, Expectation *expectation);

// A folder that the proxy writes to.
typedef struct {
  gchar *path;      // absolute
  guint64 bytes;    // of windows, caches and recordings in it; 0: whoever writes there has a bound
  gboolean endless; // recordings in it are never removed
  GPtrArray *counted; // folders of recordings in it, whose files count against `bytes`
} FolderNeed;

typedef struct {
  guint64 rate, readers, mounts, tracks;
  guint64 files;          // open files
  guint64 threads;        // threads of the process
  guint64 maps;           // mappings of memory
  guint64 memory;         // bytes, without those in the kernel
  guint64 ports;          // local UDP and TCP ports
  guint64 flows;          // connections and pairs of UDP ports, as a firewall counts them
  guint64 hosts;          // upstreams and readers
  guint64 packets_per_s;  // received from all upstreams
  guint64 receive_buffer; // of the largest socket, as SO_RCVBUF is set
  guint64 send_buffer;    // the same for SO_SNDBUF
  guint64 default_buffer; // of sockets whose buffer is not set, as the kernel accounts it
  guint64 udp_bytes;      // of the kernel, for a second of all streams over UDP
  guint64 backlog;        // connections that wait to be accepted
  gboolean clones;        // the kernel path shall be used
  GPtrArray *folders;     // of FolderNeed, each path once
} SystemNeeds;

// Computes what `config` needs. Opens its block stores, to know their disks. The caller frees the
// result with system_needs_free().
SystemNeeds *system_needs_new (const ProxyConfig *config, const Expectation *expectation);
void system_needs_free (SystemNeeds *self);
