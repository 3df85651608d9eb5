#include "worker/input/dataset/subset_dataset.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// Replaces the epoch, so that the order of the parts differs from that of every epoch.
constexpr uint64_t kNoEpoch = std::numeric_limits<uint64_t>::max();

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> SubsetDataset::Make(std::unique_ptr<Dataset> whole,
                                                             const DataSource& source) {
  const uint64_t examples = whole->size();
  // Rounds down, as Keras does.
  const auto test = static_cast<uint64_t>(source.test_split * static_cast<double>(examples));
  const auto validation =
      static_cast<uint64_t>(source.validation_split * static_cast<double>(examples));
  uint64_t first = 0, size = test;
  if (source.subset == "validation") {
    first = test;
    size = validation;
  } else if (source.subset == "training") {
    first = test + validation;
    size = examples - first;
  }
  if (size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        whole->LabelSource(), ": the subset \"", source.subset, "\" of ", examples,
        examples == 1 ? " example" : " examples", " is empty with \"validation_split\" ",
        source.validation_split, " and \"test_split\" ", source.test_split));
  }
  return std::unique_ptr<Dataset>(new SubsetDataset(std::move(whole), source, first, size));
}

SubsetDataset::SubsetDataset(std::unique_ptr<Dataset> whole, const DataSource& source,
                             uint64_t first, uint64_t size)
    : DecoratedDataset(std::move(whole)),
      subset_(source.subset),
      place_(original().size(), source.seed, kNoEpoch),
      first_(first),
      size_(size) {}

absl::Status SubsetDataset::Read(uint64_t index, std::span<const FeatureSpan> features,
                                 std::span<float> label) const {
  return original().Read(place_(first_ + index), features, label);
}

absl::Status SubsetDataset::ReadLabel(uint64_t index, std::span<float> label) const {
  return original().ReadLabel(place_(first_ + index), label);
}

std::string SubsetDataset::LabelSource() const {
  return absl::StrCat(original().LabelSource(), " (subset ", subset_, ")");
}

}  // namespace shoal
