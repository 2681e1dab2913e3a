// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A stored title as content: of one reader alone.

#include "content/content.h"
#include "content/titles.h"

// `title` comes with a reference, which is taken over.
Content *stored_content_new (Title *title);

// NULL: it is none, or of another kind.
Title *stored_content_get (Content *content);
