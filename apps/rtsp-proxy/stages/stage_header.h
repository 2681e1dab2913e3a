// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "stages/stage_file.h"
#include "text/yaml_reader.h"

// Reads the YAML header of a stage file into `self`. Returns FALSE and sets `error`, which names
// the place, if anything is wrong.
gboolean stage_header_read (YamlReader *reader, StageFile *self, GError **error);
