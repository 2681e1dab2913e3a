// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Draws the results of a run, by gnuplot.

#include "load.h"

// Returns whether gnuplot is installed. If not, a line on stderr says so.
gboolean plot_can_draw (void);

// Draws the time line and the histograms as a PNG. Returns FALSE on failure, with a line on stderr.
gboolean plot_draw (const Load *load, const gchar *file);
