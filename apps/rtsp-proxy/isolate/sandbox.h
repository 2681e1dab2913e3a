// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Takes from a worker process what its jobs do not need: privileges, other processes, files, the
// network and the memory of the machine. What the kernel does not offer is left out
// (sandbox_get_guards()); the rest holds.

#include <glib.h>

#define WORKER_SOCKET 3 // the descriptor of a worker's socket to the proxy

// What a worker's jobs need. A row of `profiles` in sandbox.c says what each may do.
typedef enum {
  SANDBOX_TITLE,   // demuxes a stored title, whose file or socket it gets from the proxy
  SANDBOX_DEMUX,   // demuxes what comes from a file or a socket that the proxy has opened
  SANDBOX_PULL,    // connects to servers, and demuxes what they send
  SANDBOX_STAGE,   // decodes and encodes, also with the devices for this
  SANDBOX_LAUNCH,  // runs the launch line of an upstream: devices and the network
  SANDBOX_SRT,     // has the callers over SRT, on the UDP port that it gets from the proxy
  SANDBOX_SWARM,   // takes part in the swarms of all titles; the pool has one worker for it
  SANDBOX_PICTURE, // decodes keyframes, and encodes still pictures
  SANDBOX_PROFILES,
} SandboxProfile;

const gchar *sandbox_get_name (SandboxProfile profile);

// Returns the profile with this name, or SANDBOX_PROFILES.
SandboxProfile sandbox_find (const gchar *name);

// Reports whether a process of the profile has the proxy make its connections (connect_trap.h).
gboolean sandbox_asks_for_connections (SandboxProfile profile);

// Returns a number that changes when the system has written files of the profile anew: a worker
// that started before may open the former ones only.
guint64 sandbox_get_version (SandboxProfile profile);

// Enters the sandbox. `reads` are files and folders beyond those that each worker of the
// profile needs; what does not exist is left out. Call before the process has a second thread.
// Returns FALSE, and logs why, if the system refuses.
gboolean sandbox_enter (SandboxProfile profile, const gchar *const *reads);

typedef struct {
  guint landlock;   // the version of Landlock's interface; 0: the kernel has none
  gboolean seccomp; // the kernel filters system calls
} SandboxGuards;

// Says which guards this system has.
void sandbox_get_guards (SandboxGuards *out);
