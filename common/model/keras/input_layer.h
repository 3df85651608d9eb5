#pragma once

#include <optional>

#include "common/base/shape.h"
#include "common/model/keras/layer.h"
#include "common/model/keras/options/layer_options.h"

namespace shoal {

// An open extent of a nested model, other than the batch's. Any extent fits.
inline constexpr int64_t kAnyExtent = -2;

// Reads the extents of a batch in Keras's form, [null, 28, 28, 1]. The first becomes kBatch, for
// any value. All other extents must be known. In a nested model, unknown ones become kAnyExtent.
absl::StatusOr<Shape> ReadBatchShape(const JsonNode& json, bool nested);

// An input of a model. Its call takes the model's input and returns it unchanged if it fits.
class InputLayerConfig : public LayerConfig {
 public:
  explicit InputLayerConfig(LayerOptions& options);
  absl::StatusOr<ValueId> Call(LayerCall& call) override;

  const Shape& shape() const { return shape_; }
  // The whole numbers that it accepts; empty if it accepts any numbers.
  const std::optional<WholeNumbers>& whole_numbers() const { return whole_numbers_; }

 private:
  Shape shape_;
  std::optional<WholeNumbers> whole_numbers_;
};

}  // namespace shoal
