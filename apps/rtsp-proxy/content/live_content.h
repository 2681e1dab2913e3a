// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A live presentation as content: its readers share it.

#include "content/content.h"
#include "content/presentation.h"

// `presentation` comes with a reference and a use, which are taken over.
Content *live_content_new (Presentation *presentation);

// NULL: it is none, or of another kind.
Presentation *live_content_get (Content *content);
