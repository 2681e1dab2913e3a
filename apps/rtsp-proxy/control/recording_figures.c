// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/recording_figures.h"

#include "control/api_answer.h"
#include "outlets/recording/recordings.h"

#include <string.h>

#define AT(field) G_STRUCT_OFFSET (RecordingSample, field)

const Figure recording_figures[] = {
  { "up", "recording_up", "gauge", "1 while parts can be written, 0 while not.", AT (up) },
  { "segments", "recording_segments", "gauge", "Segments that are there.", AT (segments) },
  { "bytes", "recording_bytes", "gauge", "Bytes of these segments.", AT (bytes) },
  { "queued-bytes", "recording_queued_bytes", "gauge", "Bytes of parts that wait to be written.",
      AT (queued_bytes) },
  { "written-segments", "recording_written_segments_total", "counter", "Segments that were ended.",
      AT (written_segments) },
  { "written-parts", "recording_written_parts_total", "counter", "Parts that were written.",
      AT (written_parts) },
  { "written-bytes", "recording_written_bytes_total", "counter", "Bytes of these parts.",
      AT (written_bytes) },
  { "dropped-parts", "recording_dropped_parts_total", "counter",
      "Parts that were not written: the disk was full, failed or was too slow.",
      AT (dropped_parts) },
  { "dropped-bytes", "recording_dropped_bytes_total", "counter", "Bytes of these parts.",
      AT (dropped_bytes) },
  { "failures", "recording_failures_total", "counter", "Attempts to write that failed.",
      AT (failures) },
  { "deleted-segments", "recording_deleted_segments_total", "counter",
      "Segments that were deleted for their age, or for the limit.", AT (deleted_segments) },
  { "trimmed-bytes", "recording_trimmed_bytes_total", "counter",
      "Bytes of parts that were cut off, which were removed.", AT (trimmed_bytes) },
  { "hooks", "recording_hooks_total", "counter", "Runs of the hook.", AT (hooks) },
  { "failed-hooks", "recording_failed_hooks_total", "counter", "Runs that failed.",
      AT (failed_hooks) },
  { "dropped-hooks", "recording_dropped_hooks_total", "counter",
      "Complete segments without a run of the hook, because too many waited.", AT (dropped_hooks) },
  { NULL },
};

#undef AT

gboolean
recording_figures_sample (Mount *mount, gpointer result)
{
  RecordingSample *sample = result;
  Recording *recording = recordings_find (mount_get_path (mount));
  RecordingHookCounts hooks;
  RecordingCounts counts;

  if (!recording)
    return FALSE;
  recording_writer_get_counts (recording_get_writer (recording), &counts);
  recording_hook_get_counts (recording_get_hook (recording), &hooks);
  *sample = (RecordingSample) { .up = strcmp (recording_get_state_name (recording), "failing") != 0,
    .written_segments = counts.written.segments,
    .written_parts = counts.written.parts,
    .written_bytes = counts.written.bytes,
    .deleted_segments = counts.written.deleted,
    .trimmed_bytes = counts.written.trimmed,
    .dropped_parts = counts.dropped,
    .dropped_bytes = counts.dropped_bytes,
    .queued_bytes = counts.queued_bytes,
    .failures = counts.failures,
    .hooks = hooks.run,
    .failed_hooks = hooks.failed,
    .dropped_hooks = hooks.dropped };
  sample->segments = recording_list_count (
      recording_writer_get_list (recording_get_writer (recording)), &sample->bytes);
  return TRUE;
}

void
recording_figures_write (JsonBuilder *builder, Mount *mount)
{
  Recording *recording = recordings_find (mount_get_path (mount));
  RecordingSample sample;
  g_autofree gchar *problem = NULL;

  if (!recording_figures_sample (mount, &sample))
    return;
  problem = recording_dup_problem (recording);
  json_builder_set_member_name (builder, "recording");
  json_builder_begin_object (builder);
  api_add_text (builder, "state", recording_get_state_name (recording));
  if (problem)
    api_add_text (builder, "problem", problem);
  if (recording_get_left_out (recording))
    api_add_text (builder, "left-out", recording_get_left_out (recording));
  figures_write (recording_figures + 1, &sample, builder); // the first one is in `state`
  json_builder_end_object (builder);
}
