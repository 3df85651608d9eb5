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

// Marks an axis of a noise shape along which elements are dropped one by one; null in Keras.
constexpr int64_t kEachByItself = 0;

class Dropout : public LayerConfig {
 public:
  explicit Dropout(LayerOptions& options) : Dropout(options, options["noise_shape"], {}) {
    if (!noise_json_.is_null()) noise_shape_ = options.Take(ReadNoiseShape(noise_json_));
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_ASSIGN_OR_RETURN(const DropoutGroups groups, Groups(call));
    if (rate_ == 0) return call.inputs()[0];
    auto op = std::make_shared<DropoutOp>();
    op->rate = rate_;
    op->groups = groups;
    op->layer_seed = call.RandomSeed(seed_);
    return call.Add(std::move(op));
  }

 protected:
  // `noise_shape` is 1 for axes along which elements are dropped together. For other axes it is
  // their extent or kEachByItself. If it is empty, all elements are dropped one by one.
  Dropout(LayerOptions& options, const JsonNode& noise_json, Shape noise_shape)
      : rate_(options.RequiredNumber("rate", {.min = 0, .max = 1, .below_max = true})),
        seed_(options.Seed()),
        noise_json_(noise_json),
        noise_shape_(std::move(noise_shape)) {}

 private:
  static absl::StatusOr<Shape> ReadNoiseShape(const JsonNode& json) {
    SHOAL_RETURN_IF_ERROR(json.ExpectArray());
    Shape shape;
    for (size_t i = 0; i < json.size(); ++i) {
      SHOAL_ASSIGN_OR_RETURN(shape.emplace_back(), json.at(i).Integer(kCounts, kEachByItself));
    }
    return shape;
  }

  // Requires that the axes along which elements are dropped together are adjacent and come after
  // the batch axis.
  absl::StatusOr<DropoutGroups> Groups(const LayerCall& call) const {
    const Shape& x = call.input_shape();
    if (!noise_shape_.empty() && noise_shape_.size() != x.size()) {
      return call.Invalid(absl::StrCat("drops along ", noise_shape_.size(),
                                       " axes, got an input of shape ", ShapeToString(x)));
    }
    std::vector<bool> shared;
    for (size_t i = 0; i < noise_shape_.size(); ++i) {
      const int64_t extent = noise_shape_[i];
      shared.push_back(extent == 1);
      if (extent == 1 || extent == kEachByItself || extent == x[i]) continue;
      return noise_json_.at(i).Invalid(
          absl::StrCat(extent, " is neither 1, for elements that are dropped together, nor null",
                       i == 0 ? "" : absl::StrCat(", nor ", x[i], ", the extent"), " of axis ", i,
                       " of an input of shape ", ShapeToString(x)));
    }
    const auto first = std::find(shared.begin(), shared.end(), true);
    if (first == shared.end()) return DropoutGroups();
    const auto end = std::find(first, shared.end(), false);
    if (first == shared.begin() || std::find(end, shared.end(), true) != shared.end()) {
      return noise_json_.Unimplemented(absl::StrCat(
          "Shoal drops elements together along neighbouring axes behind the batch, got ",
          noise_json_.Text()));
    }
    const int64_t period = ElementCount(Shape(x.begin() + (end - shared.begin()), x.end()));
    const int64_t block = ElementCount(Shape(x.begin() + (first - shared.begin()), x.end()));
    return DropoutGroups{.block = block, .period = period};
  }

  const double rate_;
  const int64_t seed_;
  const JsonNode noise_json_;
  Shape noise_shape_;
};

// Drops whole channels of images (rank 2) or sequences (rank 1).
template <int kRank>
class SpatialDropout : public Dropout {
 public:
  explicit SpatialDropout(LayerOptions& options) : Dropout(options, options.json(), NoiseShape()) {
    options.ExpectChannelsLast();
  }

 private:
  static Shape NoiseShape() {
    Shape shape(kRank + 2, 1);
    shape.front() = shape.back() = kEachByItself;
    return shape;
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
