#pragma once

#include <optional>

#include "common/base/shape.h"
#include "common/model/keras/layer.h"
#include "common/model/keras/layer_options.h"

namespace shoal {

// An extent that a nested model leaves open, beside the batch's: any fits.
inline constexpr int64_t kAnyExtent = -2;

// Extents of a batch as Keras writes them, [null, 28, 28, 1]: the first is the batch whatever its
// number. All others must be known but in a nested model, where they read as kAnyExtent.
absl::StatusOr<Shape> ReadBatchShape(const JsonNode& json, bool nested);

// An input of a model. Called on what the model is called on, which passes through when it fits.
class InputLayerConfig : public LayerConfig {
 public:
  explicit InputLayerConfig(LayerOptions& options);
  absl::StatusOr<ValueId> Call(LayerCall& call) override;

  const Shape& shape() const { return shape_; }
  // Which it takes; nothing where it takes any numbers.
  const std::optional<WholeNumbers>& whole_numbers() const { return whole_numbers_; }

 private:
  Shape shape_;
  std::optional<WholeNumbers> whole_numbers_;
};

}  // namespace shoal
