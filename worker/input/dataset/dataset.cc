#include "worker/input/dataset/dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/dataset/cached_dataset.h"
#include "worker/input/dataset/data_formats.h"
#include "worker/input/dataset/skipping_dataset.h"
#include "worker/input/dataset/subset_dataset.h"

namespace shoal {
namespace {

// Adds the weights to the source's features if `inputs` asks for them. All features then have
// names. An added feature without sources means the format's default.
DataSource WithWeightsAsFeature(DataSource source, const std::vector<Feature>& inputs) {
  const bool wanted = inputs.size() > 1 && inputs.back().type == FeatureType::kWeight;
  if (source.weights.empty() || !wanted) return source;
  if (source.features.empty()) source.features.emplace_back();
  DataSource::Feature& first = source.features[0];
  if (first.from.empty() && !source.images.empty()) first.from = {source.images};
  if (source.features.size() == 1 && first.input.empty()) first.input = inputs[0].name;
  source.features.push_back({inputs.back().name, {source.weights}});
  return source;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const DataSource& source,
                                                     const std::vector<Feature>& inputs) {
  for (const Feature& input : inputs) {
    if (ElementCount(input.shape) < 1) {
      return absl::InvalidArgumentError(absl::StrCat("the model's input \"", input.name,
                                                     "\" holds nothing: its shape is ",
                                                     ShapeToString(input.shape)));
    }
  }
  const DataFormat* format = FindDataFormat(source.format);
  if (format == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("this program cannot read the format \"", source.format, "\""));
  }
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset,
                         format->open(WithWeightsAsFeature(source, inputs), inputs));
  if (!source.subset.empty()) {
    SHOAL_ASSIGN_OR_RETURN(dataset, SubsetDataset::Make(std::move(dataset), source));
  }
  // Each prediction must belong to its own example, so predictions skip none.
  if (source.damaged == "skip" && !source.unlabelled)
    dataset = std::make_unique<SkippingDataset>(std::move(dataset));
  if (source.cache.empty()) return dataset;
  return CachedDataset::Make(std::move(dataset), source.cache == "memory"
                                                     ? CachedDataset::Place::kMemory
                                                     : CachedDataset::Place::kDisk);
}

}  // namespace shoal
