#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace shoal {

// A non-blocking socket that listens until it is destroyed.
class ListeningSocket {
 public:
  // Listens at HOST:PORT, [IPV6]:PORT (port 0 takes a free one) or unix:PATH. 0.0.0.0 and [::] both
  // mean all addresses of the machine: IPv4 and, if available, IPv6. If a name has several
  // addresses, listens at the first one that the system returns. Errors name the address and what
  // to do.
  static absl::StatusOr<ListeningSocket> Open(const std::string& address);
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_; }
  // The address, with the actual port.
  const std::string& address() const { return address_; }

 private:
  ListeningSocket(int fd, std::string address) : fd_(fd), address_(std::move(address)) {}

  int fd_;
  std::string address_;
};

}  // namespace shoal
