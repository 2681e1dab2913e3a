// SPDX-License-Identifier: LGPL-2.1-or-later
#include "peer.h"

#include <algorithm>
#include <climits>
#include <utility>

#include <libtorrent/bdecode.hpp>
#include <libtorrent/error_code.hpp>
#include <libtorrent/peer_request.hpp>
#include <libtorrent/torrent_status.hpp>

#include "swarm.h"

extern "C" {
#include "swarm/upload.h"
}

#define MESSAGE_HAVE 4
#define MESSAGE_CANCEL 8
#define MESSAGE_EXTENDED 20
#define FAST_BIT 4 // of the last reserved byte of the handshake

PeerPlugin::PeerPlugin (std::shared_ptr<Swarm> swarm, lt::peer_connection_handle connection)
    : m_swarm (std::move (swarm)), m_connection (std::move (connection)),
      m_have (std::size_t (m_swarm->info ().num_pieces ()))
{
  m_swarm->peer_came (this);
}

PeerPlugin::~PeerPlugin ()
{
  m_swarm->peer_went (this, false);
}

bool
PeerPlugin::has (int piece) const
{
  return m_have[std::size_t (piece)];
}

static void
put (char *at, int number)
{
  for (int i = 0; i < 4; i++)
    at[i] = char (std::uint32_t (number) >> (24 - 8 * i));
}

bool
PeerPlugin::on_handshake (lt::span<const char> reserved)
{
  m_rejects = reserved.size () == 8 && (reserved[7] & FAST_BIT) != 0;
  return true;
}

// libtorrent forgets the request when it is rejected.
void
PeerPlugin::cancel (int piece)
{
  char message[17] = { 0, 0, 0, 13, MESSAGE_CANCEL };

  for (const lt::peer_request &request : std::vector<lt::peer_request> (m_asked)) {
    if (!m_rejects || int (request.piece) != piece || m_connection.is_disconnecting ())
      continue;
    put (message + 5, piece);
    put (message + 9, request.start);
    put (message + 13, request.length);
    lt::peer_connection_handle (m_connection).send_buffer (message, sizeof message);
  }
}

void
PeerPlugin::tell (int piece, bool have)
{
  char message[10] = { 0, 0, 0, 5, MESSAGE_HAVE };
  int head = 5;

  if (m_connection.in_handshake () || m_connection.is_disconnecting ())
    return;
  if (!have) {
    if (m_dont_have == 0)
      return; // a refusal will tell it
    message[3] = 6;
    message[4] = MESSAGE_EXTENDED;
    message[5] = char (m_dont_have);
    head = 6;
  }
  put (message + head, piece);
  lt::peer_connection_handle (m_connection).send_buffer (message, head + 4);
}

bool
PeerPlugin::on_extension_handshake (const lt::bdecode_node &handshake)
{
  const auto numbers = handshake.type () == lt::bdecode_node::dict_t
                           ? handshake.dict_find_dict ("m")
                           : lt::bdecode_node ();
  const auto number = numbers ? numbers.dict_find_int_value ("lt_donthave", 0) : 0;
  const auto n = int (m_have.size ());

  m_dont_have = number > 0 && number < 256 ? int (number) : 0;
  // libtorrent has told it that these are there.
  for (int i = 0; m_dont_have && i < n; i++) {
    if (m_swarm->has_left (i))
      tell (i, false);
  }
  return true;
}

void
PeerPlugin::set_all (bool have)
{
  m_have.assign (m_have.size (), have);
  m_swarm->peer_changed (this);
}

bool
PeerPlugin::on_bitfield (const lt::bitfield &pieces)
{
  const auto n = std::min (m_have.size (), std::size_t (pieces.size ()));

  for (std::size_t i = 0; i < n; i++)
    m_have[i] = pieces[int (i)];
  m_swarm->peer_changed (this);
  return false;
}

bool
PeerPlugin::on_have_all ()
{
  set_all (true);
  return false;
}

bool
PeerPlugin::on_have_none ()
{
  set_all (false);
  return false;
}

bool
PeerPlugin::on_have (lt::piece_index_t piece)
{
  if (int (piece) >= 0 && std::size_t (int (piece)) < m_have.size ()) {
    m_have[std::size_t (int (piece))] = true;
    m_swarm->peer_has (this, int (piece), true);
  }
  return false;
}

bool
PeerPlugin::on_dont_have (lt::piece_index_t piece)
{
  if (int (piece) >= 0 && std::size_t (int (piece)) < m_have.size ()) {
    m_have[std::size_t (int (piece))] = false;
    m_swarm->peer_has (this, int (piece), false);
  }
  return false;
}

void
PeerPlugin::set_interested (bool interested)
{
  if (m_interested != interested)
    m_swarm->peer_interested (interested);
  m_interested = interested;
}

bool
PeerPlugin::on_interested ()
{
  set_interested (true);
  return false;
}

bool
PeerPlugin::on_not_interested ()
{
  set_interested (false);
  return false;
}

bool
PeerPlugin::on_choke ()
{
  m_sends = false;
  if (!m_rejects)
    forget_all (); // as it does
  m_swarm->peer_changed (this);
  return false;
}

bool
PeerPlugin::on_unchoke ()
{
  m_sends = true;
  m_swarm->peer_changed (this);
  return false;
}

void
PeerPlugin::sent_request (const lt::peer_request &request)
{
  if (std::find (m_asked.begin (), m_asked.end (), request) != m_asked.end ())
    return;
  m_asked.push_back (request);
  m_swarm->peer_asked (int (request.piece));
}

void
PeerPlugin::forget (const lt::peer_request &request)
{
  const auto i = std::find (m_asked.begin (), m_asked.end (), request);

  if (i == m_asked.end ())
    return;
  m_asked.erase (i);
  m_swarm->peer_answered (int (request.piece));
}

void
PeerPlugin::forget_all ()
{
  for (const lt::peer_request &request : std::exchange (m_asked, {}))
    m_swarm->peer_answered (int (request.piece));
}

bool
PeerPlugin::on_reject (const lt::peer_request &request)
{
  forget (request);
  return false;
}

bool
PeerPlugin::on_piece (const lt::peer_request &request, lt::span<const char>)
{
  forget (request);
  m_swarm->peer_sent (int (request.piece), request.start, request.length);
  return false;
}

bool
PeerPlugin::on_request (const lt::peer_request &request)
{
  m_asks = int (request.piece);
  return false;
}

void
PeerPlugin::sent_payload (int bytes)
{
  m_swarm->sent_to_peer (m_asks, bytes);
}

void
PeerPlugin::on_disconnect (const lt::error_code &error)
{
  forget_all ();
  set_interested (false);
  m_swarm->peer_went (
      this, error == lt::errors::peer_banned || error == lt::errors::too_many_corrupt_pieces);
}

// ---- the torrent ----

class TorrentPlugin final : public lt::torrent_plugin {
public:
  TorrentPlugin (std::shared_ptr<Swarm> swarm, lt::torrent_handle handle)
      : m_swarm (std::move (swarm)), m_handle (std::move (handle))
  {
  }

  std::shared_ptr<lt::peer_plugin> new_connection (
      const lt::peer_connection_handle &connection) override
  {
    if (connection.type () != lt::connection_type::bittorrent)
      return nullptr;
    return std::make_shared<PeerPlugin> (m_swarm, connection);
  }

  void on_piece_pass (lt::piece_index_t piece) override
  {
    m_swarm->piece_passed (int (piece));
  }

  void on_piece_failed (lt::piece_index_t piece) override
  {
    m_swarm->piece_failed (int (piece));
  }

  void on_files_checked () override
  {
    m_swarm->files_checked ();
  }

  void tick () override
  {
    m_swarm->second_passed ();
    limit_upload ();
  }

private:
  void limit_upload ()
  {
    if (!m_swarm->upload ())
      return;
    const lt::torrent_status status = m_handle.status ({});
    const uint64_t limit = weir_upload_limit (
        &m_upload, m_swarm->upload (), status.total_upload - status.total_payload_upload);

    m_handle.set_upload_limit (int (std::min<uint64_t> (limit, INT_MAX)));
  }

  const std::shared_ptr<Swarm> m_swarm;
  const lt::torrent_handle m_handle;
  WeirUpload m_upload = {};
};

std::shared_ptr<lt::torrent_plugin>
torrent_plugin_new (std::shared_ptr<Swarm> swarm, const lt::torrent_handle &handle)
{
  return std::make_shared<TorrentPlugin> (std::move (swarm), handle);
}
