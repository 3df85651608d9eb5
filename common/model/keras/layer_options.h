#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/json/json_errors.h"
#include "common/model/keras/initializer_config.h"
#include "common/model/keras/json_node.h"
#include "common/model/keras/layer.h"
#include "common/model/keras/regularizer_config.h"
#include "common/model/ops/resize.h"
#include "common/model/ops/window.h"

namespace shoal {

// What counts of filters and units may be, and extents of windows: beyond that nothing is.
inline constexpr IntegerRange kCounts = {1, std::numeric_limits<int32_t>::max()};
inline constexpr IntegerRange kWindowExtents = {1, 1 << 20};
// An axis, counted from the end where it is negative; no tensor has so many.
inline constexpr IntegerRange kAxes = {-64, 63};

// A variable that a layer will have once the shape of its input is known.
struct VariableOptions {
  std::string name;  // within the layer: "kernel"
  InitializerConfig initializer;
  RegularizerConfig regularizer;
  // Where the layer is trained; all its variables are frozen where it is not.
  UpdateRule rule = UpdateRule::kOptimizer;
  double momentum = 0;  // of a moving average
};

// An axis that an option names, from the end where it is negative, and where that stands.
struct AxisOption {
  JsonNode json;
  int64_t axis = -1;
};

// A layer's config while it is read. What is wrong with an option is kept as an error, and the
// option reads as its default, so that all errors of a layer are heard at once. Options that nobody
// asked for must be null or absent. Lives while the layer is read.
class LayerOptions {
 public:
  // `json` is {"class_name": ..., "config": ...}; `traits` are those of the model that it is in.
  LayerOptions(const JsonNode& json, const LayerType& type, const std::string& name,
               ModelTraits traits);

  const JsonNode& json() const { return json_; }
  // The layer's name after those of the nested models around it.
  const std::string& path() const { return path_; }
  const ModelTraits& traits() const { return traits_; }
  // Of a model: what holds for its layers.
  ModelTraits traits_of_layers() const;
  // The layer's own flag. That of a nested model means nothing, as in Keras: a model sets those of
  // all its layers when it is frozen, and any may have been set again since.
  bool trainable() const { return trainable_; }
  // What the layer computes in.
  ComputeDtype compute_dtype() const { return compute_dtype_; }

  // What its outputs add to the loss.
  const RegularizerConfig& activity_regularizer() const { return activity_regularizer_; }
  void set_activity_regularizer(RegularizerConfig regularizer) {
    activity_regularizer_ = std::move(regularizer);
  }

  // An option; a null node where there is none.
  JsonNode operator[](const std::string& key) { return config_[key]; }
  ConfigReader& config() { return config_; }

  int64_t Integer(const std::string& key, IntegerRange range, std::optional<int64_t> absent = {});
  double Number(const std::string& key, std::optional<double> absent = {});
  bool Bool(const std::string& key, bool absent);
  size_t OneOf(const std::string& key, const std::vector<std::string>& names, size_t absent);
  // That an option is absent, null or false; `lack` says what Shoal lacks.
  void ExpectFalse(const std::string& key, const std::string& lack);
  // "seed"; -1 where there is none.
  int64_t Seed();
  // Of windows over images: one for both axes, or a list of two. Over sequences (`rank` 1): one,
  // bare or in a list, for the second axis of an image of one row.
  std::array<int64_t, 2> WindowExtents(const std::string& key,
                                       std::optional<std::array<int64_t, 2>> absent = {},
                                       int rank = 2);
  // "padding": "valid", which is Keras's default, or "same". With `causal`, "causal" is known too:
  // it is set to whether that is asked for.
  Padding WindowPadding(bool* causal = nullptr);
  // An axis, bare or in a list of one.
  AxisOption Axis(const std::string& key, int64_t absent);
  // "data_format" must be absent or channels_last, the only layout there is.
  void ExpectChannelsLast();
  // "interpolation", nearest or bilinear.
  ResizeOp::Interpolation Interpolation(const std::string& absent);
  // The op that an option names, "relu" or an object; null where there is nothing to compute.
  std::shared_ptr<const Op> Activation(const std::string& key = "activation");
  // The variable "LAYER/NAME", whose initializer stands under "NAME_initializer" and regularizer
  // under "NAME_regularizer"; or another word in the place of NAME.
  VariableOptions Variable(const std::string& name, const std::string& default_initializer,
                           const std::string& option = "");
  // The same for the moving average of a statistic.
  VariableOptions MovingAverage(const std::string& name, const std::string& default_initializer,
                                double momentum);
  // A variable that is never trained, and that no option initializes.
  VariableOptions Frozen(const std::string& name, const std::string& initializer);
  // The variable "bias", unless "use_bias" is false.
  std::optional<VariableOptions> Bias();

  // What was read; where that is an error, keeps it and yields `otherwise`.
  template <typename T>
  T Take(absl::StatusOr<T> read, T otherwise = T()) {
    if (read.ok()) return *std::move(read);
    errors_.Add(read.status());
    return otherwise;
  }
  void Take(const absl::Status& status) {
    if (!status.ok()) errors_.Add(status);
  }

  // All errors; where there are none, one about an option that nobody asked for.
  absl::Status Finish() const;

 private:
  const JsonNode json_;
  const std::string path_;
  const ModelTraits traits_;
  ConfigReader config_;
  bool trainable_ = true;
  ComputeDtype compute_dtype_ = ComputeDtype::kFloat32;
  RegularizerConfig activity_regularizer_;
  JsonErrors errors_;
};

}  // namespace shoal
