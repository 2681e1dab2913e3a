// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The judge that asks a server: of the key `external-auth` of the configuration.

#include "access/judge.h"

extern const JudgeOps check_judge;

// Call from the main thread.
gpointer check_judge_new (const ProxyConfig *config);
