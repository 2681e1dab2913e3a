// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stores/swarm_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

// ---- jobs ----

void
swarm_wire_put_job (
    WireMessage *message, const SwarmReaderTitle *title, guint64 rate, guint timeout_s)
{
  wire_begin (message, WIRE_SWARM);
  wire_put (message, rate, 8);
  wire_put (message, timeout_s, 4);
  wire_put_text (message, title->torrent_name);
  wire_put_text (message, title->label);
  wire_put_text (message, title->file);
  for (const gchar *const *p = title->properties; *p; p++)
    wire_put_text (message, *p);
}

static gchar **
read_properties (WeirBytes *b)
{
  GPtrArray *properties = g_ptr_array_new_with_free_func (g_free);

  while (weir_bytes_left (b) > 0 && !b->failed) {
    gchar *text = wire_dup_text (b, G_MAXUINT16);

    if (text)
      g_ptr_array_add (properties, text);
  }
  if (properties->len % 2 > 0)
    b->failed = TRUE;
  g_ptr_array_add (properties, NULL);
  return (gchar **) g_ptr_array_free (properties, FALSE);
}

SwarmReaderTitle *
swarm_wire_read_job (const guint8 *data, gsize length, guint64 *rate, guint *timeout_s)
{
  SwarmReaderTitle *title = g_new0 (SwarmReaderTitle, 1);
  WeirBytes b = weir_bytes (data, length);
  guint8 type = 0;
  gchar *file;

  title->torrent = title->storage = -1;
  weir_bytes_u8 (&b, &type);
  weir_bytes_u64 (&b, rate);
  weir_bytes_u32 (&b, timeout_s);
  title->torrent_name = wire_dup_text (&b, G_MAXUINT16);
  title->label = wire_dup_text (&b, G_MAXUINT16);
  file = wire_dup_text (&b, G_MAXUINT16);
  title->file = file && *file ? file : NULL;
  if (!title->file)
    g_free (file);
  title->properties = (const gchar *const *) read_properties (&b);
  if (!b.failed && type == WIRE_SWARM)
    return title;
  swarm_wire_free_title (title);
  return NULL;
}

void
swarm_wire_free_title (SwarmReaderTitle *title)
{
  g_free ((gchar *) title->torrent_name);
  g_free ((gchar *) title->label);
  g_free ((gchar *) title->file);
  g_strfreev ((gchar **) title->properties);
  g_free (title);
}

// ---- a reader's messages ----

void
swarm_wire_put_read (WireMessage *message, guint64 offset, guint32 length)
{
  wire_begin (message, (WireType) SWARM_WIRE_READ);
  wire_put (message, offset, 8);
  wire_put (message, length, 4);
}

void
swarm_wire_put_failure (WireMessage *message, const GError *error)
{
  g_autofree gchar *text = g_strndup (error->message, WIRE_TEXT_MAX);

  wire_begin (message, (WireType) SWARM_WIRE_FAILED);
  wire_put (message, (guint64) error->code, 4);
  wire_put_text (message, text);
}

static GError *
read_failure (WeirBytes *b)
{
  GError *error = NULL;
  guint32 code;
  g_autofree gchar *text = NULL;

  weir_bytes_u32 (b, &code);
  text = wire_dup_message (b, WIRE_TEXT_MAX);
  // Others mean something else to outlets.
  if (code != G_IO_ERROR_NOT_FOUND && code != G_IO_ERROR_INVALID_DATA)
    code = G_IO_ERROR_PROXY_FAILED;
  if (text)
    error = g_error_new_literal (G_IO_ERROR, (gint) code, text);
  return error;
}

gboolean
swarm_wire_read (const guint8 *data, gsize length, SwarmWireMessage *message)
{
  WeirBytes b = weir_bytes (data, length);
  guint8 type = 0;

  *message = (SwarmWireMessage) { 0 };
  weir_bytes_u8 (&b, &type);
  message->type = type;
  switch (message->type) {
    case SWARM_WIRE_READ:
      weir_bytes_u64 (&b, &message->number);
      weir_bytes_u32 (&b, &message->length);
      break;
    case SWARM_WIRE_REST:
      break;
    case SWARM_WIRE_OPENED:
      weir_bytes_u64 (&b, &message->number);
      break;
    case SWARM_WIRE_BYTES:
      message->length = (guint32) weir_bytes_left (&b);
      weir_bytes_take (&b, message->length, &message->bytes);
      break;
    case SWARM_WIRE_FAILED:
      message->error = read_failure (&b);
      break;
    default:
      return FALSE;
  }
  if (!b.failed && weir_bytes_left (&b) == 0)
    return TRUE;
  g_clear_error (&message->error);
  return FALSE;
}

// ---- the page ----

static SwarmPage *
map (int file)
{
  SwarmPage *self = mmap (NULL, sizeof *self, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

  return self == MAP_FAILED ? NULL : self;
}

SwarmPage *
swarm_page_new (int *file)
{
  SwarmPage *self = NULL;

  *file = memfd_create ("swarm-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*file < 0)
    return NULL;
  if (ftruncate (*file, sizeof *self) == 0 && fcntl (*file, F_ADD_SEALS, SEALS) == 0)
    self = map (*file);
  if (!self) {
    close (*file);
    *file = -1;
  }
  return self;
}

SwarmPage *
swarm_page_map (int file)
{
  struct stat st;

  return fstat (file, &st) == 0 && st.st_size == sizeof (SwarmPage) ? map (file) : NULL;
}

void
swarm_page_free (SwarmPage *self)
{
  if (self)
    munmap (self, sizeof *self);
}

void
swarm_page_put (SwarmPage *self, const StoreSwarmTitle *figures)
{
  guint64 numbers[G_N_ELEMENTS (self->figures)];

  memcpy (numbers, figures, sizeof numbers);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    __atomic_store_n (&self->figures[i], numbers[i], __ATOMIC_RELAXED);
}

void
swarm_page_get (const SwarmPage *self, StoreSwarmTitle *figures)
{
  guint64 numbers[G_N_ELEMENTS (self->figures)];

  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    numbers[i] = __atomic_load_n (&self->figures[i], __ATOMIC_RELAXED);
  memcpy (figures, numbers, sizeof numbers);
}

void
swarm_page_beat (SwarmPage *self)
{
  __atomic_add_fetch (&self->beats, 1, __ATOMIC_RELAXED);
}

guint64
swarm_page_get_beats (const SwarmPage *self)
{
  return __atomic_load_n (&self->beats, __ATOMIC_RELAXED);
}
