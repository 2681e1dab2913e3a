// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel path of a fanoutsink: which of its readers can get clones.
#include "fanoutsink_private.h"
#include "kernel/kernel.h"

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

gboolean
fanout_clones_load (WeirFanoutSink *self, GError **error)
{
  WeirKernelMode mode = fanout_clones_get_mode (self);
  GError *err = NULL;

  if (mode == WEIR_KERNEL_OFF || weir_kernel_use (mode == WEIR_KERNEL_ON, &err))
    return TRUE;
  if (mode == WEIR_KERNEL_ON) {
    g_propagate_prefixed_error (error, err, "kernel=on: ");
    return FALSE;
  }
  // gst-launch-1.0 prints the second text only.
  if (g_error_matches (err, G_IO_ERROR, G_IO_ERROR_BUSY))
    GST_ELEMENT_INFO (self, RESOURCE, BUSY,
        ("readers are served without the kernel path for now: %s", err->message),
        ("%s", err->message));
  else
    GST_ELEMENT_INFO (self, RESOURCE, SETTINGS,
        ("readers are served without the kernel path: %s", err->message), ("%s", err->message));
  g_error_free (err);
  return TRUE;
}

void
fanout_clones_set_route (WeirFanoutSink *self, Name *name)
{
  gboolean force = self->kernel == WEIR_KERNEL_ON;
  const WeirCloner *cloner = NULL;
  WeirCloneRoute *route = NULL;

  if (!name->inet)
    return;
  // The kernel's limit of the socket's rate does not hold for clones. With `auto`, the route is
  // used only while no rule is gone round.
  if (self->kernel != WEIR_KERNEL_OFF && self->sockets.v4 && (self->max_pacing_rate == 0 || force)
      && weir_kernel_use (TRUE, NULL))
    route =
        weir_kernel_route_new (g_socket_get_fd (self->sockets.v4), &name->address, force, &cloner);
  weir_reader_set_clone_route (name->reader, cloner, route);
}

void
fanout_clones_update (WeirFanoutSink *self)
{
  for (GList *l = self->names.head; l && self->started; l = l->next)
    fanout_clones_set_route (self, l->data);
}

WeirKernelMode
fanout_clones_get_mode (WeirFanoutSink *self)
{
  WeirKernelMode mode;

  g_mutex_lock (&self->control);
  mode = self->kernel;
  g_mutex_unlock (&self->control);
  return mode;
}

void
fanout_clones_set_mode (WeirFanoutSink *self, WeirKernelMode mode)
{
  GError *err = NULL;
  gboolean started, same;

  g_mutex_lock (&self->control);
  same = self->kernel == mode;
  self->kernel = mode;
  started = self->started;
  g_mutex_unlock (&self->control);
  if (same)
    return;
  if (started && !fanout_clones_load (self, &err)) {
    GST_ELEMENT_WARNING (self, RESOURCE, SETTINGS, ("%s", err->message), (NULL));
    g_error_free (err);
  }
  g_mutex_lock (&self->control);
  fanout_clones_update (self);
  g_mutex_unlock (&self->control);
}
