// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "load.h"

// Whether there is a program that draws; says on stderr what is wanted if there is none.
gboolean plot_can_draw (void);

// Draws the time line and the histograms as a PNG. False, with a line on stderr, if that failed.
gboolean plot_draw (const Load *load, const gchar *file);
