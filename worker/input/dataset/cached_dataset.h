#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "worker/input/dataset/decorated_dataset.h"

namespace shoal {

// Reads each example of another data set once and then keeps it: in memory, or in an unnamed
// temporary file in $TMPDIR, whose pages the kernel drops when memory is short. Make() allocates
// the space for all examples, or fails.
class CachedDataset : public DecoratedDataset {
 public:
  enum class Place { kMemory, kDisk };
  // Returns kFailedPrecondition or kResourceExhausted, with the size, if there is not enough space.
  static absl::StatusOr<std::unique_ptr<Dataset>> Make(std::unique_ptr<Dataset> original,
                                                       Place place);
  ~CachedDataset() override;

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override;
  DatasetMemory memory() const override;

 private:
  // empty -> writing -> kept. A thread reads an example first, then writes its row. Another thread
  // that finds the row in kWriting has also read the example, and continues.
  enum class Row : uint8_t { kEmpty, kWriting, kKept };

  CachedDataset(std::unique_ptr<Dataset> original, Place place, std::span<float> rows);

  const Place place_;
  const std::span<float> rows_;  // mapped: features and label of each example
  const size_t row_numbers_;
  const std::unique_ptr<std::atomic<Row>[]> states_;
};

}  // namespace shoal
