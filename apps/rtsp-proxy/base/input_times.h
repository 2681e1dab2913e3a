// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The times of the pipeline of a stage with several inputs. Its running time is the time of the
// relay that it feeds. Frames of the first input have that time already; those of the others are
// moved so that they are as old as those of the first that arrive with them. Sound and picture of
// one input stay together. Collectors (GstAggregator) put out frames in a steady rhythm: a picture
// in which a frame of the first input is new gets its time, so that it fits the sound.

#include <gst/gst.h>

// The name of an element identity whose ts-offset is the relay's time minus the monotonic time. The
// elements that read the inputs are called input0, input1 ...
#define INPUT_TIMES "input-times"

// Prepares a pipeline that has not started. No effect for one without INPUT_TIMES.
void input_times_align (GstElement *pipeline);
