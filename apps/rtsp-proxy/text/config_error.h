// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What is wrong with a configuration, a stage file or a value of either.

#include <glib.h>

#define CONFIG_ERROR (config_error_quark ())
GQuark config_error_quark (void);

typedef enum {
  CONFIG_ERROR_FILE,  // a file can't be read
  CONFIG_ERROR_YAML,  // a file is not YAML
  CONFIG_ERROR_KEY,   // a key is unknown, missing or there twice
  CONFIG_ERROR_VALUE, // a value does not fit its key
} ConfigError;
