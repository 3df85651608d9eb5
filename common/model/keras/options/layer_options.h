#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/json/json_errors.h"
#include "common/json/json_node.h"
#include "common/json/keras_options.h"
#include "common/model/compute_dtype.h"
#include "common/model/keras/options/initializer_config.h"
#include "common/model/keras/options/model_traits.h"
#include "common/model/keras/options/regularizer_config.h"
#include "common/model/op.h"
#include "common/model/ops/resize.h"
#include "common/model/ops/window.h"
#include "common/model/variable.h"

namespace shoal {

// The allowed counts of filters and units, and the allowed extents of windows.
inline constexpr IntegerRange kCounts = {1, std::numeric_limits<int32_t>::max()};
inline constexpr IntegerRange kWindowExtents = {1, 1 << 20};
// The allowed axes; negative ones count from the end. No tensor has this many.
inline constexpr IntegerRange kAxes = {-64, 63};

// A variable that a layer adds once it knows the shape of its input.
struct VariableOptions {
  std::string name;  // within the layer: "kernel"
  InitializerConfig initializer;
  RegularizerConfig regularizer;
  // Applies if the layer is trainable; otherwise all its variables are frozen.
  UpdateRule rule = UpdateRule::kOptimizer;
  double momentum = 0;  // for kMovingAverage
};

// An axis that an option names and its place in the JSON. A negative axis counts from the end.
struct AxisOption {
  JsonNode json;
  int64_t axis = -1;
};

// A layer whose options are not read yet.
struct LayerSource {
  JsonNode json;           // {"class_name": ..., "config": ...}
  std::string class_name;  // LayerType::class_name
  std::string name;
  ModelTraits traits = {};  // of the model around the layer
  // Whether it is an input of a model. Its "dtype" is then that of its values, not a type to
  // compute in.
  bool is_input = false;
};

// Reads a layer's config: options as those of every Keras object, and those that many layers have.
// An invalid option reads as a placeholder. This lets Finish() report all errors of a layer at
// once. Options that the layer does not read must be null or absent. Lives while the layer is read.
class LayerOptions : public KerasOptions {
 public:
  // `errors` is for this layer alone and must outlive this.
  LayerOptions(const LayerSource& layer, JsonErrors* errors);

  const JsonNode& json() const { return json_; }
  // The layer's name with the names of the nested models around it.
  const std::string& path() const { return path_; }
  const ModelTraits& traits() const { return traits_; }
  // For a model: the traits of its layers.
  ModelTraits traits_of_layers() const;
  // The layer's own flag. As in Keras, the flag of a nested model has no effect. Freezing a model
  // sets the flags of all its layers, and each flag can be changed later.
  bool trainable() const { return trainable_; }
  // The type that the layer computes in.
  ComputeDtype compute_dtype() const { return compute_dtype_; }

  // The penalty of its outputs on the loss.
  const RegularizerConfig& activity_regularizer() const { return activity_regularizer_; }
  void set_activity_regularizer(RegularizerConfig regularizer) {
    activity_regularizer_ = std::move(regularizer);
  }

  // Rejects an option unless it is absent, null or false. `lack` is the message about what Shoal
  // lacks.
  void ExpectFalse(const char* key, const std::string& lack);
  // Reads "seed"; -1 if it is absent.
  int64_t Seed();
  // Reads extents of windows. For images: one number for both axes, or a list of two. For sequences
  // (`rank` 1): one number, bare or in a list, for the second axis of an image with one row.
  std::array<int64_t, 2> WindowExtents(const std::string& key,
                                       std::optional<std::array<int64_t, 2>> absent = {},
                                       int rank = 2);
  // Reads "padding": "valid", which is Keras's default, or "same". If `causal` is not null, also
  // accepts "causal" and sets `*causal` to whether it was given.
  Padding WindowPadding(bool* causal = nullptr);
  // Reads an axis, bare or in a list of one.
  AxisOption Axis(const std::string& key, int64_t absent);
  // Rejects a "data_format" other than channels_last, the only layout that Shoal has.
  void ExpectChannelsLast();
  // Reads "interpolation", nearest or bilinear.
  ResizeOp::Interpolation Interpolation(const std::string& absent);
  // Reads an option that names an activation, "relu" or an object. Returns null if there is nothing
  // to compute.
  std::shared_ptr<const Op> Activation(const std::string& key = "activation");
  // Reads the variable "LAYER/NAME" with its options "NAME_initializer" and "NAME_regularizer". If
  // `option` is given, it replaces NAME in the options.
  VariableOptions Variable(const std::string& name, const std::string& default_initializer,
                           const std::string& option = "");
  // The same for the moving average of a statistic.
  VariableOptions MovingAverage(const std::string& name, const std::string& default_initializer,
                                double momentum);
  // A variable that is never trained and that has no option for its initializer.
  VariableOptions Frozen(const std::string& name, const std::string& initializer);
  // The variable "bias", unless "use_bias" is false.
  std::optional<VariableOptions> Bias();

 private:
  const JsonNode json_;
  const std::string path_;
  const ModelTraits traits_;
  bool trainable_ = true;
  ComputeDtype compute_dtype_ = ComputeDtype::kFloat32;
  RegularizerConfig activity_regularizer_;
};

}  // namespace shoal
