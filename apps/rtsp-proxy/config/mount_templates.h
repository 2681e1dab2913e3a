// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Keys that mounts of the file share: `defaults`, which all have, and `templates`, of which each
// mount may name one.

#include "text/schema.h"

// Values of the file, which are checked, and used by mount_templates_apply().
extern const SchemaValue mount_defaults_value, mount_templates_value;

// Gives a mount the keys of its template and of the defaults that it does not have, nor another key
// for the same. Returns FALSE and sets `error` if there is no such template.
gboolean mount_templates_apply (YamlReader *reader, YamlNode *mount, GError **error);
