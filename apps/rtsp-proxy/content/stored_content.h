// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stored title as content. Each client has its own title.

#include "content/content.h"
#include "content/titles.h"

// Takes ownership of a reference to `title`.
Content *stored_content_new (Title *title);

// Returns NULL if `content` is NULL or of another kind.
Title *stored_content_get (Content *content);
