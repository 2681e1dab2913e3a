// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a swarm learns from its peers and tells them beyond libtorrent's own messages. On the
// session's thread only.

#include <libtorrent/bitfield.hpp>
#include <libtorrent/extensions.hpp>
#include <libtorrent/peer_connection_handle.hpp>
#include <libtorrent/torrent_handle.hpp>

class Swarm;

class PeerPlugin final : public lt::peer_plugin {
public:
  PeerPlugin (std::shared_ptr<Swarm> swarm, lt::peer_connection_handle connection);
  ~PeerPlugin () override;

  // Tells that a piece of the torrent is there again, or has left (BEP 54).
  void tell (int piece, bool have);

  // Takes back what was asked of it of a piece, if it would answer that (BEP 6).
  void cancel (int piece);

  bool has (int piece) const;
  bool sends () const
  {
    return m_sends;
  }

  // The swarm's: what it has counted of the peer, how many pieces that is, and whether it sends.
  std::vector<bool> counted;
  std::uint32_t n_counted = 0;
  bool counted_sends = false;

  bool on_handshake (lt::span<const char> reserved) override;
  bool on_interested () override;
  bool on_not_interested () override;
  bool on_choke () override;
  bool on_unchoke () override;
  bool on_have (lt::piece_index_t piece) override;
  bool on_dont_have (lt::piece_index_t piece) override;
  bool on_bitfield (const lt::bitfield &pieces) override;
  bool on_have_all () override;
  bool on_have_none () override;
  bool on_extension_handshake (const lt::bdecode_node &handshake) override;
  bool on_piece (const lt::peer_request &request, lt::span<const char> bytes) override;
  bool on_request (const lt::peer_request &request) override;
  bool on_reject (const lt::peer_request &request) override;
  void sent_request (const lt::peer_request &request) override;
  void sent_payload (int bytes) override;
  void on_disconnect (const lt::error_code &error) override;

private:
  void set_all (bool have);
  void set_interested (bool interested);
  void forget (const lt::peer_request &request);
  void forget_all ();

  const std::shared_ptr<Swarm> m_swarm;
  const lt::peer_connection_handle m_connection;
  std::vector<bool> m_have;              // of the torrent
  std::vector<lt::peer_request> m_asked; // of it, and not answered
  int m_asks = -1;                       // the piece that it has asked for last
  int m_dont_have = 0;                   // the number of its message; 0: it does not know any
  bool m_rejects = false;                // what it does not send (BEP 6)
  bool m_sends = false;
  bool m_interested = false; // in what is there
};

std::shared_ptr<lt::torrent_plugin> torrent_plugin_new (
    std::shared_ptr<Swarm> swarm, const lt::torrent_handle &handle);
