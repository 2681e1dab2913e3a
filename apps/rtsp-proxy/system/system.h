// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the checks read of the system: files below a root, and what no file tells.

#include <glib.h>

#include "isolate/sandbox.h"

// Whether a network device does a part of the work itself.
typedef enum {
  OFFLOAD_UNKNOWN,
  OFFLOAD_NONE, // the device cannot
  OFFLOAD_OFF,  // it can, and is set not to
  OFFLOAD_ON,
} Offload;

typedef struct {
  gchar *name;                // such as "eth0"
  gchar *qdisc;               // the kind of its root queue, such as "fq"; NULL: unknown
  guint rx_ring, rx_ring_max; // descriptors; 0: unknown
  Offload gro;
  Offload udp_segmentation;
} SystemDevice;

// The user of the systemd unit (data/rtsp-proxy.service.in).
#define SYSTEM_SERVICE_USER "rtsp-proxy"

typedef struct {
  gchar *root;            // before the paths of all files; "" for the system itself
  guint64 files;          // the most that RLIMIT_NOFILE can be raised to; G_MAXUINT64: no limit
  guint64 user_threads;   // RLIMIT_NPROC; G_MAXUINT64: no limit
  guint64 receive_buffer; // what net.core.rmem_max allows, found by trying; 0: unknown
  guint64 send_buffer;    // the same of net.core.wmem_max
  gboolean udp_segment;   // the kernel has the socket option UDP_SEGMENT
  gboolean udp_gro;       // and UDP_GRO
  SandboxGuards guards;   // of worker processes
  guint service_uid, service_gid; // of SYSTEM_SERVICE_USER
  gboolean has_service_user;
  gboolean may_clone; // this process has CAP_BPF and CAP_NET_ADMIN
  GPtrArray *devices; // of SystemDevice: those with an address, without loopback
} System;

// Makes an empty system whose files are below `root`. The caller frees it with system_free().
System *system_new (const gchar *root);
void system_free (System *self);

// Adds a device of which only the name is known. (transfer none)
SystemDevice *system_add_device (System *self, const gchar *name);

// Returns the text of a file without white space around it, or NULL with `error`. `path` is
// absolute. The caller owns the text.
gchar *system_read (const System *self, const gchar *path, GError **error);

// Reads the numbers of a file, which white space separates; "max" is G_MAXUINT64. Fewer than `n`
// are an error.
gboolean system_read_numbers (
    const System *self, const gchar *path, guint64 *numbers, guint n, GError **error);

// Returns the path of a file of this process's control group below `controller`'s hierarchy, such
// as "/sys/fs/cgroup/a.slice/pids.max". `level` 0 is the group of the process, 1 its parent, and so
// on up to the root. Returns NULL above it, or if there is no such hierarchy. The caller owns it.
gchar *system_dup_group_file (
    const System *self, const gchar *controller, guint level, const gchar *file);
