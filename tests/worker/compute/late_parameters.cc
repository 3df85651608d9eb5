#include "tests/worker/compute/late_parameters.h"

#include <algorithm>
#include <limits>

#include "common/base/status_macros.h"

namespace shoal {

LateParameters::LateParameters(const ModelLayout& layout, std::span<const float> values)
    : layout_(layout),
      values_(values.begin(), values.end()),
      buffer_(values.size(), std::numeric_limits<float>::quiet_NaN()) {}

absl::Status LateParameters::Await(int variable) {
  if (on_await) SHOAL_RETURN_IF_ERROR(on_await(variable));
  MutexLock lock(&mutex_);
  if (awaits_[variable]++ > 0) return absl::OkStatus();
  const auto& [offset, size] = layout_.variables[variable];
  std::copy_n(values_.begin() + offset, size, buffer_.begin() + offset);
  return absl::OkStatus();
}

std::map<int, int> LateParameters::awaits() {
  MutexLock lock(&mutex_);
  return awaits_;
}

}  // namespace shoal
