#pragma once

#include <string>

namespace shoal {

// This process waits for the system to say which addresses a host has: a name server does not
// answer, perhaps. gRPC tells nobody, so the lookups are counted where it asks (getaddrinfo).
// Thread-safe.
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

// The host of "HOST:PORT" or "[HOST]:PORT".
std::string HostOf(const std::string& address);

}  // namespace shoal
