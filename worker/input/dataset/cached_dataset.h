#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "worker/input/dataset/decorated_dataset.h"

namespace shoal {

// Another data set, each of whose examples is read once and then kept: in memory, or in a temporary
// file without a name in $TMPDIR, whose pages the kernel drops when memory is short. Room for all
// is taken, and found missing, at the beginning.
class CachedDataset : public DecoratedDataset {
 public:
  enum class Place { kMemory, kDisk };
  // kFailedPrecondition or kResourceExhausted, with the size, where there is no room.
  static absl::StatusOr<std::unique_ptr<Dataset>> Make(std::unique_ptr<Dataset> original,
                                                       Place place);
  ~CachedDataset() override;

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override;
  DatasetMemory memory() const override;

 private:
  // empty -> writing -> kept. An example is read first and written then; who finds its row being
  // written has read it too, and goes on.
  enum class Row : uint8_t { kEmpty, kWriting, kKept };

  CachedDataset(std::unique_ptr<Dataset> original, Place place, std::span<float> rows);

  const Place place_;
  const std::span<float> rows_;  // mapped: features and label of each example
  const size_t row_numbers_;
  const std::unique_ptr<std::atomic<Row>[]> states_;
};

}  // namespace shoal
