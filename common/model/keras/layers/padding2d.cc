#include <array>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/pad.h"

namespace shoal {
namespace {

constexpr IntegerRange kMargins = {0, 1 << 20};

// Reads the margins of an image: one for all sides, one for each axis, or ((top, bottom), (left,
// right)).
absl::StatusOr<Margins> ReadMargins(const JsonNode& json, int64_t absent) {
  if (!json.is_array() || json.size() != 2 || !json.at(0).is_array()) {
    SHOAL_ASSIGN_OR_RETURN(const auto sides, json.Pair(kMargins, {{absent, absent}}));
    return Margins{.before = {sides[0], sides[1], 0}, .after = {sides[0], sides[1], 0}};
  }
  SHOAL_ASSIGN_OR_RETURN(const auto rows, json.at(0).Pair(kMargins));
  SHOAL_ASSIGN_OR_RETURN(const auto columns, json.at(1).Pair(kMargins));
  return Margins{.before = {rows[0], columns[0], 0}, .after = {rows[1], columns[1], 0}};
}

class ZeroPadding2D : public LayerConfig {
 public:
  explicit ZeroPadding2D(LayerOptions& options) {
    op_.margins = options.Take(ReadMargins(options["padding"], 1));
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    return call.Add(std::make_shared<PadOp>(op_));
  }

 private:
  PadOp op_;
};

class Cropping2D : public LayerConfig {
 public:
  explicit Cropping2D(LayerOptions& options) {
    op_.margins = options.Take(ReadMargins(options["cropping"], 0));
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    return call.Add(std::make_shared<CropOp>(op_));
  }

 private:
  CropOp op_;
};

}  // namespace

extern const LayerType kZeroPadding2DLayer = {"ZeroPadding2D", LayerType::Inputs::kOne,
                                              "Zeros around an image", ReadAs<ZeroPadding2D>,
                                              LayerType::Integers::kAsNumbers};

extern const LayerType kCropping2DLayer = {"Cropping2D", LayerType::Inputs::kOne,
                                           "An image without its margins", ReadAs<Cropping2D>,
                                           LayerType::Integers::kAsNumbers};

}  // namespace shoal
