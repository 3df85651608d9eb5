#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "common/security/tls_files.h"

namespace shoal {

// The chains that were verified in the last second, with the CAs of the same files. Their first
// certificate may have expired. Otherwise a client that opens stream after stream would keep the
// event loop busy. Holds a limited number of chains of usual size. Not thread-safe.
class VerifiedChains {
 public:
  bool Contains(std::string_view chain_pem, const std::shared_ptr<const TlsFiles>& files,
                absl::Time now) const;
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
