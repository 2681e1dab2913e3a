// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/http/http_refusal.h"

#include <libsoup/soup.h>

#include "base/log.h"
#include "base/memory.h"
#include "readers/reader_limit.h"

static const HttpRefusal faults[REQUEST_N_FAULTS] = {
  [REQUEST_LINE_LONG] = { SOUP_STATUS_REQUEST_URI_TOO_LONG, REFUSED_LINE,
      "the request line is too long (limits.line)" },
  [REQUEST_HEADER_LONG] = { SOUP_STATUS_BAD_REQUEST, REFUSED_HEADERS,
      "a header line is too long (limits.line)" },
  [REQUEST_HEADERS_MANY] = { SOUP_STATUS_BAD_REQUEST, REFUSED_HEADERS,
      "a request has too many header lines (limits.headers)" },
  [REQUEST_HEAD_LARGE] = { SOUP_STATUS_BAD_REQUEST, REFUSED_HEADERS,
      "the lines of a request are too large (limits.head)" },
  [REQUEST_BODY_LARGE] = { SOUP_STATUS_REQUEST_ENTITY_TOO_LARGE, REFUSED_BODY,
      "the body of a request is too large (limits.body)" },
  [REQUEST_MALFORMED] = { SOUP_STATUS_BAD_REQUEST, REFUSED_MALFORMED, "a request is malformed" },
  [REQUEST_VERSION_WRONG] = { SOUP_STATUS_HTTP_VERSION_NOT_SUPPORTED, REFUSED_VERSION,
      "a request is neither HTTP/1.1 nor HTTP/1.0" },
};

const HttpRefusal *
http_refusal_of (RequestFault fault)
{
  return &faults[fault];
}

static guint
get_max_readers (Mount *mount)
{
  MountConfig *config = mount_dup_config (mount);
  guint max = config->max_readers;

  mount_config_unref (config);
  return max;
}

const HttpRefusal *
http_refusal_of_reader (Mount *mount)
{
  static const HttpRefusal memory = { SOUP_STATUS_SERVICE_UNAVAILABLE, REFUSED_MEMORY,
    MEMORY_PROBLEM };
  static const HttpRefusal readers = { SOUP_STATUS_SERVICE_UNAVAILABLE, REFUSED_READERS,
    "the mount has no room for another reader (max-readers)" };

  if (memory_get_level () != MEMORY_ENOUGH)
    return &memory;
  return reader_limit_take (mount_get_path (mount), get_max_readers (mount)) ? NULL : &readers;
}

gboolean
http_refusal_is_full (Mount *mount)
{
  return memory_get_level () != MEMORY_ENOUGH
         || (mount && reader_limit_is_full (mount_get_path (mount), get_max_readers (mount)));
}

guint
http_refusal_of_error (const GError *error, const gchar **text)
{
  *text = NULL;
  switch (error->domain == G_IO_ERROR ? error->code : G_IO_ERROR_NOT_FOUND) {
    case G_IO_ERROR_TOO_MANY_OPEN_FILES:
    case G_IO_ERROR_BUSY:
      *text = error->message;
      return SOUP_STATUS_SERVICE_UNAVAILABLE;
    case G_IO_ERROR_PROXY_FAILED:
      *text = "the server that has this title cannot be read now";
      return SOUP_STATUS_BAD_GATEWAY;
    case G_IO_ERROR_TIMED_OUT:
      *text = "the server that has this title has not answered in time";
      return SOUP_STATUS_GATEWAY_TIMEOUT;
    case G_IO_ERROR_INVALID_DATA:
      *text = "the store of this title cannot be read";
      return SOUP_STATUS_INTERNAL_SERVER_ERROR;
    default:
      return SOUP_STATUS_NOT_FOUND;
  }
}

gchar *
http_refusal_enter_store (StoreBytes *bytes, guint64 at, const gchar *peer, const gchar *path)
{
  static LogLimit limit = { .burst = 10, .interval_ms = 1000 };
  GError *error = NULL;
  gchar *reason;

  if (store_bytes_enter (bytes, at, &error))
    return NULL;
  log_event_limited (&limit, "reader %s refused: %s: %s", peer, path, error->message);
  reason = g_strdup (error->message);
  g_error_free (error);
  return reason;
}
