#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/safetensors.h"
#include "common/model/keras_model.h"
#include "common/model/loss.h"

namespace shoal {

// Keras's results for one model and one batch, read from a folder with model.json, case.json and
// case.safetensors (see docs/keras-parity.md). Immutable after Load.
struct GoldenCase {
  struct Optimizer {
    std::string name;  // "adam": prefix of its tensors
    std::string json;  // Keras config
  };

  // Errors name the file and the problem: kInvalidArgument; kUnimplemented for a layer, a loss or
  // an option that Shoal lacks.
  static absl::StatusOr<GoldenCase> Load(const std::string& directory);

  KerasModel model;
  std::shared_ptr<const Loss> loss;
  std::vector<Optimizer> optimizers;
  int64_t steps = 0;              // of each optimizer, on the same batch
  double relative_tolerance = 0;  // of outputs, loss and gradients
  double after_tolerance = 0;     // of the results of the optimizers
  std::unique_ptr<SafetensorsFile> tensors;
  std::vector<std::vector<float>> inputs;  // in the order of the graph's inputs
  std::vector<float> target;
  std::vector<float> weights;               // of the examples; empty: all 1
  std::map<int64_t, double> class_weights;  // empty: all 1
  int64_t examples = 0;
  std::set<std::string> batch_tensors;  // the file's names of inputs, target and weights
};

// The difference of one tensor from Keras's.
struct GoldenRow {
  std::string what;  // the tensor's name in the file: "gradient/dense/kernel"
  // max |a - b| / max(max |b| of the tensor, 0.01 max |b| of all tensors of its kind)
  double largest_relative_error = 0;
  double tolerance = 0;
  bool ok = false;
  // If not empty: the tensor was not compared, because Shoal lacks this feature. `ok` is false.
  std::string not_supported;
  // If not empty: the reason why nothing was compared with this tensor of the file. `ok` is false.
  std::string left_over;
};

// Computes everything in the case with the backend ("cpu", "reference" or "cuda:N") on one thread:
// outputs in inference and training, loss, gradients, then for each optimizer the losses and the
// variables. An optimizer that Shoal lacks is one row, and so is each uncompared tensor of the
// file. All layers compute in `compute_dtype`, whatever their policies are: Keras's results are
// more exact than bfloat16 and float16. Errors are Load's and ModelRunner's.
absl::StatusOr<std::vector<GoldenRow>> VerifyGoldenCase(
    const std::string& directory, const std::string& backend,
    ComputeDtype compute_dtype = ComputeDtype::kFloat32);

}  // namespace shoal
