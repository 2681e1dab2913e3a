// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// `rtsp-proxy import-mediamtx [-o FILE] mediamtx.yml`: writes a configuration that serves the same
// streams, and says what became of each key.

#define IMPORT_MEDIAMTX_COMMAND "import-mediamtx"

// `argv[0]` is the name of the command. Returns the exit status.
int import_mediamtx_run (int argc, char **argv);
