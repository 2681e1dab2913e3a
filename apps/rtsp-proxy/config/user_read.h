// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads and checks one user of the configuration.

#include "config/user.h"
#include "text/schema.h"

// Returns NULL and sets `error` if anything is wrong. (transfer full)
User *user_read (YamlReader *reader, YamlNode *node, GError **error);

// Checks that a file with secrets can be read, and not by every user of the machine. Returns NULL,
// or a message. (transfer full)
gchar *user_check_secret_file (const gchar *file);

extern const SchemaObject user_object; // the keys of a user
