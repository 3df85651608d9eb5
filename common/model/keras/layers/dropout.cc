#include "common/model/ops/dropout.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"

namespace shoal {
namespace {

class Dropout : public LayerConfig {
 public:
  explicit Dropout(LayerOptions& options) : Dropout(options, options["noise_shape"], {}) {
    if (!noise_json_.is_null()) shared_axes_ = options.Take(ReadNoiseShape(noise_json_));
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    const Shape& x = call.input_shape();
    if (!shared_axes_.empty() && shared_axes_.size() != x.size()) {
      return call.Invalid(absl::StrCat("drops along ", shared_axes_.size(),
                                       " axes, got an input of shape ", ShapeToString(x)));
    }
    SHOAL_ASSIGN_OR_RETURN(const DropoutGroups groups, Groups(x));
    if (rate_ == 0) return call.inputs()[0];
    auto op = std::make_shared<DropoutOp>();
    op->rate = rate_;
    op->groups = groups;
    op->layer_seed = call.RandomSeed(seed_);
    return call.Add(std::move(op));
  }

 protected:
  // `shared_axes`: true for axes whose elements are dropped together; empty: there are none.
  Dropout(LayerOptions& options, const JsonNode& noise_json, std::vector<bool> shared_axes)
      : rate_(options.Number("rate")),
        seed_(options.Seed()),
        noise_json_(noise_json),
        shared_axes_(std::move(shared_axes)) {
    if (rate_ >= 0 && rate_ < 1) return;
    const JsonNode rate = options["rate"];
    options.Take(rate.Invalid(absl::StrCat(rate.Text(), " must be at least 0 and below 1")));
  }

 private:
  // [null, 1, 1, null]: 1 where elements are dropped together, null where not.
  static absl::StatusOr<std::vector<bool>> ReadNoiseShape(const JsonNode& json) {
    SHOAL_RETURN_IF_ERROR(json.ExpectArray());
    std::vector<bool> shared;
    for (size_t i = 0; i < json.size(); ++i) {
      if (!json.at(i).is_null()) SHOAL_RETURN_IF_ERROR(json.at(i).Integer({1, 1}).status());
      shared.push_back(!json.at(i).is_null());
    }
    return shared;
  }

  // The shared axes must be neighbours, behind that of the batch.
  absl::StatusOr<DropoutGroups> Groups(const Shape& x) const {
    const auto first = std::find(shared_axes_.begin(), shared_axes_.end(), true);
    if (first == shared_axes_.end()) return DropoutGroups();
    const auto end = std::find(first, shared_axes_.end(), false);
    if (first == shared_axes_.begin() ||
        std::find(end, shared_axes_.end(), true) != shared_axes_.end()) {
      return noise_json_.Unimplemented(absl::StrCat(
          "Shoal drops elements together along neighbouring axes behind the batch, got ",
          noise_json_.Text()));
    }
    const int64_t period = ElementCount(Shape(x.begin() + (end - shared_axes_.begin()), x.end()));
    const int64_t block = ElementCount(Shape(x.begin() + (first - shared_axes_.begin()), x.end()));
    return DropoutGroups{.block = block, .period = period};
  }

  const double rate_;
  const int64_t seed_;
  const JsonNode noise_json_;
  std::vector<bool> shared_axes_;
};

// Whole channels of images, or of sequences (rank 1).
template <int kRank>
class SpatialDropout : public Dropout {
 public:
  explicit SpatialDropout(LayerOptions& options) : Dropout(options, options.json(), SharedAxes()) {
    options.ExpectChannelsLast();
  }

 private:
  static std::vector<bool> SharedAxes() {
    std::vector<bool> shared(kRank + 2, true);
    shared.front() = shared.back() = false;
    return shared;
  }
};

}  // namespace

extern const LayerType kDropoutLayer = {
    "Dropout", LayerType::Inputs::kOne,
    "Drops elements in training, the same when a step is computed again", ReadAs<Dropout>,
    LayerType::Integers::kAsNumbers};

extern const LayerType kSpatialDropout2DLayer = {
    "SpatialDropout2D", LayerType::Inputs::kOne, "Drops whole channels of images in training",
    ReadAs<SpatialDropout<2>>, LayerType::Integers::kAsNumbers};

extern const LayerType kSpatialDropout1DLayer = {
    "SpatialDropout1D", LayerType::Inputs::kOne, "Drops whole channels of sequences in training",
    ReadAs<SpatialDropout<1>>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
