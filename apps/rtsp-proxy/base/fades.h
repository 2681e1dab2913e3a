// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Properties of a pipeline's elements that go from one value to another at a given time.

#include <gst/gst.h>

// Lets properties of the pipeline's elements change. `fades` is a list of words: when they begin
// to change, in ns since 1970; how long this takes, in ns; and for each the property, as
// ELEMENT.PROPERTY or ELEMENT.PAD::PROPERTY, its value before and its value after. The pipeline has
// its base time already and runs by the system's clock. Returns FALSE and sets `error` if there is
// no such property, or if it cannot change so.
gboolean fades_begin (GstElement *pipeline, const gchar *fades, GError **error);
