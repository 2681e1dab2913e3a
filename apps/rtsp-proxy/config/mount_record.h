// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `record` of a mount: how its stream is recorded.

#include "text/schema.h"

extern const SchemaObject mount_record_object;
