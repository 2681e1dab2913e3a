// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Where the bytes of pieces lie: in memory, or in an unnamed file. Whoever has a slot can read it,
// even when its piece has left the storage. Call from any thread.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

// Room for the bytes of one piece.
class Slot {
public:
  virtual ~Slot () = default;
  // Return false with errno if the disk fails.
  virtual bool write (uint32_t offset, const char *bytes, size_t length) = 0;
  virtual bool read (uint32_t offset, char *bytes, size_t length) const = 0;
};

class Slots : public std::enable_shared_from_this<Slots> {
public:
  // Makes room for pieces of `piece_bytes` bytes in the open `file`, in a new one in `folder`, or,
  // if they are -1 and "", in memory. Returns null and a reason in `why` if there is no file.
  static std::shared_ptr<Slots> make (
      uint32_t piece_bytes, const std::string &folder, int file, std::string &why);
  ~Slots ();

  std::shared_ptr<Slot> take ();

  bool in_file () const
  {
    return m_fd >= 0;
  }

private:
  friend class FileSlot;
  Slots (uint32_t piece_bytes, int fd) : m_piece_bytes (piece_bytes), m_fd (fd)
  {
  }

  const uint32_t m_piece_bytes;
  const int m_fd;
  std::mutex m_lock;
  std::vector<uint32_t> m_free;
  uint32_t m_n = 0;
};
