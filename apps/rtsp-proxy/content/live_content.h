// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A live presentation as content. Its readers share it.

#include "content/content.h"
#include "content/presentation.h"

// Takes ownership of a reference to `presentation` and of a use of it.
Content *live_content_new (Presentation *presentation);

// Returns NULL if `content` is NULL or of another kind.
Presentation *live_content_get (Content *content);
