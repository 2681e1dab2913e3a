// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/config_error.h"

G_DEFINE_QUARK (config - error - quark, config_error)
