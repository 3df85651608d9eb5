#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace shoal {

// A socket that listens, until it is destroyed. Does not block.
class ListeningSocket {
 public:
  // At HOST:PORT, [IPV6]:PORT (port 0 takes a free one) or unix:PATH. 0.0.0.0 and [::] both stand
  // for all addresses of the machine, of IPv4 and, where it has that, IPv6. Of a name that
  // has several addresses, the first that the system gives. Errors name the address and what to do.
  static absl::StatusOr<ListeningSocket> Open(const std::string& address);
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_; }
  // With the port that it has.
  const std::string& address() const { return address_; }

 private:
  ListeningSocket(int fd, std::string address) : fd_(fd), address_(std::move(address)) {}

  int fd_;
  std::string address_;
};

}  // namespace shoal
