// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// `rtsp-proxy hash-password [--user NAME]`: reads a password from the terminal without showing it,
// or from the standard input, and prints the secrets of a user for the configuration.

#define HASH_PASSWORD_COMMAND "hash-password"

// `argv[0]` is the name of the command. Returns the exit status.
int hash_password_run (int argc, char **argv);
