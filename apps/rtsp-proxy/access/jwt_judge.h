// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The judge of signed tokens: of the key `jwt` of the configuration.

#include "access/judge.h"

extern const JudgeOps jwt_judge;

// Call from the main thread.
gpointer jwt_judge_new (const ProxyConfig *config);
