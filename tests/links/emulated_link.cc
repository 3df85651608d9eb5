#include "tests/links/emulated_link.h"

#include <algorithm>

namespace shoal {

std::optional<Time> EmulatedLink::Send(Time now, int64_t size_bytes) {
  // Both are drawn for every packet, so that what one suffers does not move the next one's lot.
  std::uniform_real_distribution<double> share(0, 1);
  const bool lost = share(random_) < options_.loss;
  const Time jitter = FromSeconds(share(random_) * ToSeconds(options_.jitter));
  if (wire_free_ - now > kMaxQueued) {
    ++counts_.dropped;
    return std::nullopt;
  }
  const auto bits = static_cast<double>(size_bytes) * 8;
  wire_free_ =
      std::max(wire_free_, now) + FromSeconds(bits / static_cast<double>(options_.bits_per_second));
  if (lost) {  // on the way: it has taken its time on the wire
    ++counts_.lost;
    return std::nullopt;
  }
  ++counts_.packets;
  counts_.bytes += static_cast<uint64_t>(size_bytes);
  last_arrival_ = std::max(last_arrival_, wire_free_ + options_.delay + jitter);
  return last_arrival_;
}

}  // namespace shoal
