// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The errors of a configuration, of a stage file, and of a value in either.

#include <glib.h>

#define CONFIG_ERROR (config_error_quark ())
GQuark config_error_quark (void);

typedef enum {
  CONFIG_ERROR_FILE,  // a file cannot be read
  CONFIG_ERROR_YAML,  // a file is not YAML
  CONFIG_ERROR_KEY,   // a key is unknown, missing or duplicate
  CONFIG_ERROR_VALUE, // a value does not fit its key
  // A value is good, but the file, folder or device that it names is not there, or not as it must
  // be. This can change while the program runs.
  CONFIG_ERROR_ABSENT,
} ConfigError;
