// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The part of the sandbox that Landlock does: which files a process may open, by their paths.

#include <glib.h>

typedef enum {
  SANDBOX_FILES_NAMES = 1 << 0,   // what resolves names of hosts and checks their certificates
  SANDBOX_FILES_DEVICES = 1 << 1, // devices that decode, encode, capture and play
  SANDBOX_FILES_SHARED = 1 << 2,  // abstract sockets of other programs, such as a display's
} SandboxFiles;

// Returns the version of the kernel's interface; 0: it has none.
guint sandbox_files_version (void);

// From now on, the thread and those that it starts open only the libraries and data of the system,
// what `which` says, and `reads`. Files that are open stay so. Returns 0, also if the
// kernel has no Landlock, or an errno.
gint sandbox_files_limit (SandboxFiles which, const gchar *const *reads);
