// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The command `rtsp-proxy make-certificate [--host NAME]... FILE.pem`. `argv` begins with the
// command. Returns the exit status of the program.
int make_certificate_run (int argc, char **argv);
