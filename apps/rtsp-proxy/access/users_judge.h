// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The judge of the users of the configuration: by their networks and permissions, and by basic and
// digest authentication.

#include "access/judge.h"

extern const JudgeOps users_judge;

gpointer users_judge_new (const ProxyConfig *config);
