// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads the configuration file every 10 s, for mounts that lack something of this machine. A thread
// reads it, because a folder on a server that does not answer may block. Call from the main thread
// only.

#include "cli/options.h"

typedef struct _LookAgain LookAgain;

// `found` gets each good configuration, and owns it. A file that is wrong now is passed over.
LookAgain *look_again_new (
    const Options *options, void (*found) (ProxyConfig *config, gpointer data), gpointer data);
void look_again_free (LookAgain *self);

// Looks, or stops looking.
void look_again_set (LookAgain *self, gboolean wanted);
