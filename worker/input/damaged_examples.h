#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace shoal {

// What becomes of examples that cannot be read: they fail, or the next one that can be read takes
// their place, so that a batch is as large as it is everywhere. Thread-safe.
class DamagedExamples {
 public:
  // `skip`: whether others take their place.
  explicit DamagedExamples(bool skip) : skip_(skip) {}

  // Reads example `index` of `size` by `read`. Damage is kDataLoss and kUnimplemented: of these
  // the first few of a place are logged by their message, with how many there were so far. Where a
  // hundred in a row are damaged, the error of the first.
  absl::Status Read(uint64_t index, uint64_t size,
                    const std::function<absl::Status(uint64_t index)>& read) const;

 private:
  void Count(const absl::Status& status) const;

  const bool skip_;
  mutable std::atomic<uint64_t> skipped_ = 0;
};

}  // namespace shoal
