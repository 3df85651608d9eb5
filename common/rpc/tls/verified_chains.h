#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "common/security/tls_files.h"

namespace shoal {

// Remembers for a second which chains lead to a CA of the same files. Otherwise a client that opens
// stream after stream would keep the event loop busy. Says nothing about the dates of a chain's
// first certificate, nor about its usages. Holds at most 1000 chains, of at most 16 KiB. Not
// thread-safe.
class VerifiedChains {
 public:
  // Returns whether Add() has had this chain for these files in the second before `now`.
  bool Contains(std::string_view chain_pem, const std::shared_ptr<const TlsFiles>& files,
                absl::Time now) const;
  // The chain, as PEM, leads to a CA of `files` at `now`. Forgets the chains of other files.
  void Add(std::string_view chain_pem, const std::shared_ptr<const TlsFiles>& files,
           absl::Time now);

 private:
  bool IsCurrent(const std::shared_ptr<const TlsFiles>& files, absl::Time now) const {
    return files == files_ && now >= begin_ && now < begin_ + absl::Seconds(1);
  }

  std::shared_ptr<const TlsFiles> files_;
  absl::Time begin_ = absl::InfinitePast();
  std::set<std::string, std::less<>> chains_;
};

}  // namespace shoal
