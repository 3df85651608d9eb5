#include <array>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/ops/resize.h"

namespace shoal {
namespace {

absl::StatusOr<ValueId> Resize(std::shared_ptr<const ResizeOp> op, LayerCall& call) {
  if (!op->KeepsWholeNumbers()) SHOAL_RETURN_IF_ERROR(call.ExpectFloats());
  return call.Add(std::move(op));
}

class UpSampling2D : public LayerConfig {
 public:
  explicit UpSampling2D(LayerOptions& options) : size_(options.WindowExtents("size", {{2, 2}})) {
    op_.interpolation = options.Interpolation("nearest");
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    auto op = std::make_shared<ResizeOp>(op_);
    op->height = size_[0] * call.input_shape()[1];
    op->width = size_[1] * call.input_shape()[2];
    return Resize(std::move(op), call);
  }

 private:
  const std::array<int64_t, 2> size_;
  ResizeOp op_;
};

class Resizing : public LayerConfig {
 public:
  explicit Resizing(LayerOptions& options) {
    op_.height = options.RequiredInteger("height", kWindowExtents);
    op_.width = options.RequiredInteger("width", kWindowExtents);
    op_.interpolation = options.Interpolation("bilinear");
    for (const char* key : {"crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"}) {
      options.ExpectFalse(key, "Shoal resizes each axis by itself, without smoothing");
    }
    for (const char* of_padding : {"fill_mode", "fill_value"}) options.Ignore(of_padding);
    options.ExpectChannelsLast();
  }

  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    return Resize(std::make_shared<ResizeOp>(op_), call);
  }

 private:
  ResizeOp op_;
};

}  // namespace

extern const LayerType kUpSampling2DLayer = {
    "UpSampling2D", LayerType::Inputs::kOne,
    "An image larger by a whole factor, nearest or bilinear", ReadAs<UpSampling2D>,
    LayerType::Integers::kAsNumbers};

extern const LayerType kResizingLayer = {"Resizing", LayerType::Inputs::kOne,
                                         "An image of another size, nearest or bilinear",
                                         ReadAs<Resizing>, LayerType::Integers::kAsNumbers};

}  // namespace shoal
