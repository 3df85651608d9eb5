#include "common/rpc/tls/verified_chains.h"

#include <cstddef>

namespace shoal {
namespace {

constexpr size_t kMaxChains = 1000;
constexpr size_t kMaxChainBytes = size_t{16} << 10;

}  // namespace

bool VerifiedChains::Contains(std::string_view chain_pem,
                              const std::shared_ptr<const TlsFiles>& files, absl::Time now) const {
  return IsCurrent(files, now) && chains_.contains(chain_pem);
}

void VerifiedChains::Add(std::string_view chain_pem, const std::shared_ptr<const TlsFiles>& files,
                         absl::Time now) {
  if (!IsCurrent(files, now)) {
    chains_.clear();
    files_ = files;
    begin_ = now;
  }
  if (chains_.size() < kMaxChains && chain_pem.size() <= kMaxChainBytes) chains_.emplace(chain_pem);
}

}  // namespace shoal
