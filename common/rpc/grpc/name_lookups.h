#pragma once

#include <string>

namespace shoal {

// Whether this process is looking up the addresses of `host`; the name server may not answer. gRPC
// does not report its lookups, so they are counted inside getaddrinfo. Thread-safe.
bool IsLookedUp(const std::string& host);

// Counts one lookup of a host while it lives.
class NameLookup {
 public:
  explicit NameLookup(const std::string& host);
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;
  ~NameLookup();

 private:
  const std::string host_;
};

// Returns the host of "HOST:PORT" or "[HOST]:PORT".
std::string HostOf(const std::string& address);

}  // namespace shoal
