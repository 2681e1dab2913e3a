// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes what the HTTP outlet reads. The first byte of the input says what the rest is: 'f', a
// media file, whose duration is found; anything else, the bytes of a client, which are checked in
// pieces of that many bytes, and requests among them are parsed.

#include "app.h"

#include "outlets/http/http_request.h"
#include "stores/duration.h"
#include "text/request_check.h"

#include <string.h>

#define REQUESTS 100
#define FILE_SIZE 1000

typedef struct {
  const uint8_t *data;
  size_t size;
} Input;

static gsize
read_input (gpointer data, guint64 offset, guint8 *bytes, gsize length)
{
  const Input *input = data;
  gsize n = offset < input->size ? MIN (length, input->size - (gsize) offset) : 0;

  if (n > 0)
    memcpy (bytes, input->data + offset, n);
  return n;
}

static void
choose (const HttpRequest *request)
{
  HttpBody body;

  http_request_choose (request, FILE_SIZE, "\"tag\"", 1000000000, &body);
  require (body.status == 200 || body.status == 206 || body.status == 304 || body.status == 416);
  require (body.start <= FILE_SIZE && body.length <= FILE_SIZE - body.start);
  require (body.status != 206 || body.length > 0);
}

static void
parse (const RequestCheck *check, const uint8_t *data)
{
  GByteArray *head = request_dup_head (check, data);
  HttpRequest request;
  guint status = http_request_read (&request, head->data, head->len);

  require (status == 0 || status == 400 || status == 411);
  if (status == 0) {
    require (*request.target == '/');
    choose (&request);
  }
  http_request_clear (&request);
  g_byte_array_unref (head);
}

static void
read_requests (const uint8_t *data, size_t size, size_t piece)
{
  const RequestLimits limits = { .line = 2048, .headers = 64, .head = 16384, .body = 65536 };

  for (guint i = 0; i < REQUESTS && size > 0; i++) {
    RequestCheck check = { .http = TRUE };
    gsize whole = 0;

    for (size_t n = MIN (piece, size); whole == 0 && check.fault == REQUEST_FINE;
        n = MIN (n + piece, size)) {
      whole = request_check (&check, &limits, data, n);
      if (n == size)
        break;
    }
    require (whole <= size && (whole == 0 || check.fault == REQUEST_FINE));
    if (whole == 0)
      return;
    parse (&check, data);
    data += whole;
    size -= whole;
  }
}

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  only_critical ();
  return 0;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  Input input = { data + 1, size - 1 };

  if (size == 0)
    return 0;
  if (*data == 'f')
    require (duration_find (read_input, &input, input.size) >= -1);
  else
    read_requests (data + 1, size - 1, MAX (*data, 1));
  return 0;
}
