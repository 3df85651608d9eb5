#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/input/dataset.h"

namespace shoal {

// Another data set, each of whose examples is read once and then kept: in memory, or in a temporary
// file without a name in $TMPDIR, whose pages the kernel drops when memory is short. Room for all
// is taken, and found missing, at the beginning.
class CachedDataset : public Dataset {
 public:
  enum class Place { kMemory, kDisk };
  // kFailedPrecondition or kResourceExhausted, with the size, where there is no room.
  static absl::StatusOr<std::unique_ptr<Dataset>> Make(std::unique_ptr<Dataset> original,
                                                       Place place);
  ~CachedDataset() override;

  uint64_t size() const override { return original_->size(); }
  const std::vector<Feature>& features() const override { return original_->features(); }
  const Shape& label_shape() const override { return original_->label_shape(); }
  absl::Status Read(uint64_t index, std::span<const std::span<float>> features,
                    std::span<float> label) const override;
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    return original_->ReadLabel(index, label);
  }
  std::string NameOf(uint64_t index) const override { return original_->NameOf(index); }
  std::string LabelSource() const override { return original_->LabelSource(); }
  bool IsWorkToRead() const override { return original_->IsWorkToRead(); }
  DatasetMemory memory() const override;
  uint64_t bytes_for_label() const override { return original_->bytes_for_label(); }

 private:
  // empty -> writing -> kept. An example is read first and written then; who finds its row being
  // written has read it too, and goes on.
  enum class Row : uint8_t { kEmpty, kWriting, kKept };

  CachedDataset(std::unique_ptr<Dataset> original, Place place, std::span<float> rows);

  const std::unique_ptr<Dataset> original_;
  const Place place_;
  const std::span<float> rows_;  // mapped: features and label of each example
  const size_t row_numbers_;
  const std::unique_ptr<std::atomic<Row>[]> states_;
};

}  // namespace shoal
