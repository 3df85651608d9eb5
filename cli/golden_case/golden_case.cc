#include "cli/golden_case/golden_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/moving_average.h"
#include "common/optimizer/optimizer.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {
namespace {

using Tensors = std::vector<std::pair<std::string, std::vector<float>>>;

double Largest(std::span<const float> values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

// max |a - b|; infinite if either is not-a-number.
double LargestDifference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a[i]} - b[i]);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

// Computes a case part by part and compares it.
class Verification {
 public:
  Verification(const GoldenCase& golden, std::unique_ptr<ModelRunner> runner)
      : golden_(golden),
        variables_(golden.model.graph.variables()),
        runner_(std::move(runner)),
        batch_{.examples = golden.examples,
               .inputs = {golden.inputs.begin(), golden.inputs.end()},
               .target = golden.target,
               .weights = golden.weights},
        asked_for_(golden.batch_tensors) {}

  absl::StatusOr<std::vector<GoldenRow>> Run() && {
    SHOAL_RETURN_IF_ERROR(ReadWeights());
    SHOAL_RETURN_IF_ERROR(CompareOutputs());
    SHOAL_RETURN_IF_ERROR(CompareGradients());
    for (const GoldenCase::Optimizer& optimizer : golden_.optimizers) {
      SHOAL_RETURN_IF_ERROR(CompareOptimizer(optimizer));
    }
    AddLeftOver();
    return std::move(rows_);
  }

 private:
  absl::StatusOr<std::vector<float>> Expected(const std::string& name, size_t size) {
    const SafetensorsFile& file = *golden_.tensors;
    const TensorEntry* entry = file.Find(name);
    if (entry == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.path(), ": there is no tensor \"", name, "\""));
    }
    SHOAL_ASSIGN_OR_RETURN(std::vector<float> values, file.ReadFloats(*entry));
    asked_for_.insert(name);
    if (values.size() == size) return values;
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": tensor \"", name, "\" of shape ", ShapeToString(entry->shape),
                     " has ", values.size(), " values; the model needs ", size));
  }

  // Adds a row for each tensor of one kind.
  absl::Status Compare(const Tensors& tensors, double tolerance) {
    std::vector<std::vector<float>> expected;
    double largest_of_kind = 0;
    for (const auto& [name, values] : tensors) {
      SHOAL_ASSIGN_OR_RETURN(expected.emplace_back(), Expected(name, values.size()));
      largest_of_kind = std::max(largest_of_kind, Largest(expected.back()));
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      const double difference = LargestDifference(tensors[i].second, expected[i]);
      const double scale = std::max(Largest(expected[i]), 0.01 * largest_of_kind);
      GoldenRow row;
      row.what = tensors[i].first;
      row.largest_relative_error = difference == 0 ? 0 : difference / scale;
      row.tolerance = tolerance;
      row.ok = row.largest_relative_error <= tolerance;
      rows_.push_back(std::move(row));
    }
    return absl::OkStatus();
  }

  // The part of a buffer that holds a variable.
  template <typename Floats>
  auto Part(Floats& buffer, size_t variable) const {
    const ModelLayout::Extent& extent = runner_->layout().variables[variable];
    return std::span(buffer).subspan(extent.offset, extent.size);
  }

  // The gradients of the variables that the optimizer updates.
  std::vector<std::span<float>> OptimizedParts(std::vector<float>& gradients) const {
    std::vector<std::span<float>> parts;
    for (size_t v = 0; v < variables_.size(); ++v) {
      if (variables_[v].rule == UpdateRule::kOptimizer) parts.push_back(Part(gradients, v));
    }
    return parts;
  }

  // The variables in `buffer`, or only those that the optimizer updates, with names under `prefix`.
  Tensors Named(const std::string& prefix, const std::vector<float>& buffer,
                bool only_optimized) const {
    Tensors tensors;
    for (size_t v = 0; v < variables_.size(); ++v) {
      if (only_optimized && variables_[v].rule != UpdateRule::kOptimizer) continue;
      const auto values = Part(buffer, v);
      tensors.emplace_back(prefix + variables_[v].name,
                           std::vector<float>(values.begin(), values.end()));
    }
    return tensors;
  }

  absl::Status ReadWeights() {
    weights_.resize(runner_->layout().size);
    for (size_t v = 0; v < variables_.size(); ++v) {
      const auto part = Part(weights_, v);
      SHOAL_ASSIGN_OR_RETURN(const std::vector<float> values,
                             Expected("weights/" + variables_[v].name, part.size()));
      std::copy(values.begin(), values.end(), part.begin());
    }
    return absl::OkStatus();
  }

  absl::Status CompareOutputs() {
    Tensors outputs;
    for (const bool training : {false, true}) {
      SHOAL_ASSIGN_OR_RETURN(std::vector<float> output,
                             runner_->Predict(batch_, weights_, training));
      outputs.emplace_back(training ? "output/training" : "output/inference", std::move(output));
    }
    return Compare(outputs, golden_.relative_tolerance);
  }

  absl::Status CompareGradients() {
    std::vector<float> gradients(weights_.size());
    SHOAL_ASSIGN_OR_RETURN(const float loss, TrainStep(0, weights_, gradients));
    SHOAL_RETURN_IF_ERROR(Compare({{"loss", {loss}}}, golden_.relative_tolerance));
    return Compare(Named("gradient/", gradients, true), golden_.relative_tolerance);
  }

  absl::Status CompareOptimizer(const GoldenCase::Optimizer& optimizer) {
    const absl::StatusOr<std::unique_ptr<const Optimizer>> made =
        MakeOptimizer(optimizer.json, absl::StrCat("$.optimizers.", optimizer.name));
    if (absl::IsUnimplemented(made.status())) {
      GoldenRow row;
      row.what = absl::StrCat("after/", optimizer.name);
      row.not_supported = std::string(made.status().message());
      skipped_.push_back(row.what + "/");
      rows_.push_back(std::move(row));
      return absl::OkStatus();
    }
    SHOAL_RETURN_IF_ERROR(made.status());
    const Optimizer* const rule = made->get();
    std::vector<std::vector<float>> slots;  // each laid out like the parameters
    for (size_t s = 0; s < rule->slot_names().size(); ++s) {
      slots.emplace_back(weights_.size(), rule->initial_slot_value(static_cast<int>(s)));
    }
    std::vector<float> parameters = weights_, gradients(weights_.size()), losses;
    for (int64_t step = 0; step < golden_.steps; ++step) {
      SHOAL_ASSIGN_OR_RETURN(const float loss, TrainStep(step, parameters, gradients));
      losses.push_back(loss);
      rule->clipping().Clip(OptimizedParts(gradients));
      Apply(*rule, step + 1, gradients, parameters, slots);
    }
    const std::string prefix = absl::StrCat("after/", optimizer.name, "/");
    SHOAL_RETURN_IF_ERROR(Compare({{prefix + "loss", std::move(losses)}}, golden_.after_tolerance));
    return Compare(Named(prefix, parameters, false), golden_.after_tolerance);
  }

  // A result of Keras that Shoal does not compute is a difference, too.
  void AddLeftOver() {
    for (const TensorEntry& tensor : golden_.tensors->tensors()) {
      const auto holds = [&](const std::string& prefix) {
        return absl::StartsWith(tensor.name, prefix);
      };
      if (asked_for_.contains(tensor.name) || std::any_of(skipped_.begin(), skipped_.end(), holds))
        continue;
      GoldenRow row;
      row.what = tensor.name;
      row.left_over = "Shoal computes nothing of this name";
      for (const Variable& variable : variables_) {
        if (tensor.name == "gradient/" + variable.name)
          row.left_over =
              "Shoal computes no gradient of this variable: the optimizer does not update it here";
      }
      rows_.push_back(std::move(row));
    }
  }

  // Returns the mean of the loss. If a gradient overflows float16, repeats the step with the next
  // loss scale.
  absl::StatusOr<float> TrainStep(uint64_t step, const std::vector<float>& parameters,
                                  std::vector<float>& gradients) {
    BatchResult result;
    do {
      SHOAL_ASSIGN_OR_RETURN(result, runner_->Train(batch_, step, parameters, gradients, nullptr));
    } while (result.overflowed && result.loss_scale > 1);
    return static_cast<float>(result.loss_sum / static_cast<double>(result.examples));
  }

  void Apply(const Optimizer& optimizer, uint64_t iteration, const std::vector<float>& gradients,
             std::vector<float>& parameters, std::vector<std::vector<float>>& slots) const {
    for (size_t v = 0; v < variables_.size(); ++v) {
      if (!variables_[v].pushed()) continue;
      const std::span<float> values = Part(parameters, v);
      if (variables_[v].rule == UpdateRule::kMovingAverage) {
        UpdateMovingAverage(variables_[v].momentum, Part(gradients, v), values, values);
        continue;
      }
      std::vector<float*> slot_parts;
      for (std::vector<float>& slot : slots) slot_parts.push_back(Part(slot, v).data());
      const bool decays = !optimizer.decay_exclusions().Excludes(variables_[v].name);
      optimizer.Prepare(iteration, {.decays = decays})
          ->Apply(Part(gradients, v), values, values, slot_parts);
    }
  }

  const GoldenCase& golden_;
  const std::vector<Variable>& variables_;
  const std::unique_ptr<ModelRunner> runner_;
  const Batch batch_;
  std::vector<float> weights_;
  std::set<std::string> asked_for_;   // names of the compared tensors of the file
  std::vector<std::string> skipped_;  // prefixes of tensors whose row is "not supported"
  std::vector<GoldenRow> rows_;
};

}  // namespace

absl::StatusOr<std::vector<GoldenRow>> VerifyGoldenCase(const std::string& directory,
                                                        const std::string& backend,
                                                        ComputeDtype compute_dtype) {
  SHOAL_ASSIGN_OR_RETURN(GoldenCase golden, GoldenCase::Load(directory));
  golden.model.graph.SetComputeDtype(compute_dtype);
  ModelRunner::Options options;
  options.model = golden.model.graph;
  options.loss = golden.loss;
  options.weighted = !golden.weights.empty();
  options.class_weights = golden.class_weights;
  options.backend = backend;
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, CreateModelRunner(options));
  return Verification(golden, std::move(runner)).Run();
}

}  // namespace shoal
