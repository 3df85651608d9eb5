#include "worker/job/job_data.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/ops/gather.h"
#include "worker/compute/runner/labels.h"
#include "worker/job/label_shape.h"

namespace shoal {
namespace {

// The max number of labels to check, and of numbers in them: about a second of work.
constexpr uint64_t kMaxLabels = 1 << 20;
constexpr uint64_t kMaxNumbers = 1 << 26;
// The same for labels that are read with their records, and the max bytes of these records.
constexpr uint64_t kMaxRecords = 1 << 12;
constexpr uint64_t kMaxRecordBytes = 256 << 20;
constexpr uint64_t kNumbersAtOnce = 64 << 10;

uint64_t NumbersOfLabel(const Dataset& dataset) {
  return std::max<int64_t>(1, ElementCount(dataset.label_shape()));
}

absl::Status CheckFirstLabels(const Dataset& dataset, uint64_t count, const Loss& loss,
                              int64_t outputs, const std::string& file) {
  const uint64_t numbers = NumbersOfLabel(dataset);
  const uint64_t at_once = std::max<uint64_t>(1, kNumbersAtOnce / numbers);
  std::vector<float> labels;
  std::vector<uint64_t> indices;
  for (uint64_t begin = 0; begin < count; begin += indices.size()) {
    indices.resize(std::min(at_once, count - begin));
    std::iota(indices.begin(), indices.end(), begin);
    labels.resize(indices.size() * numbers);
    for (size_t i = 0; i < indices.size(); ++i) {
      SHOAL_RETURN_IF_ERROR(
          dataset.ReadLabel(indices[i], std::span(labels).subspan(i * numbers, numbers)));
    }
    SHOAL_RETURN_IF_ERROR(CheckLabels({.examples = static_cast<int64_t>(indices.size()),
                                       .target = labels,
                                       .target_file = file,
                                       .indices = indices},
                                      loss, outputs));
  }
  return absl::OkStatus();
}

bool AnyByteIsRight(const Feature& feature) {
  return feature.type == FeatureType::kFloat ||
         (feature.type == FeatureType::kInteger && feature.min <= 0 && feature.max >= 255);
}

}  // namespace

absl::Status CheckModelOfJob(const KerasModel& model) {
  const size_t inputs = model.graph.inputs().size(), outputs = model.graph.outputs().size();
  if (inputs >= 1 && outputs == 1) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("model ", model.name, " has ", inputs, inputs == 1 ? " input" : " inputs",
                   " and ", outputs, outputs == 1 ? " output" : " outputs",
                   "; a job has data for one input or several, and for one output"));
}

std::vector<Feature> InputsOf(const Graph& model) {
  // The row number of a table is an integer, even if the model's input is float32.
  std::map<ValueId, int64_t> rows;
  for (const Node& node : model.nodes()) {
    if (dynamic_cast<const GatherOp*>(node.op.get()) != nullptr) {
      rows[node.inputs[1]] = model.value(node.inputs[0]).shape[0];
    }
  }
  std::vector<Feature> inputs;
  for (const ValueId id : model.inputs()) {
    const Value& value = model.value(id);
    Feature& input = inputs.emplace_back(Feature{.name = value.name});
    if (value.whole_numbers.has_value()) {
      input.type = FeatureType::kInteger;
      input.min = value.whole_numbers->min;
      input.max = value.whole_numbers->max;
    }
    if (const auto numbered = rows.find(id); numbered != rows.end()) {
      input.type = FeatureType::kInteger;
      input.min = std::max<int64_t>(input.min, 0);
      input.max = std::min(input.max, numbered->second - 1);
    }
    if (!value.shape.empty()) input.shape.assign(value.shape.begin() + 1, value.shape.end());
  }
  return inputs;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenJobData(const DataSource& source, const Loss& loss,
                                                     const Graph& model) {
  std::vector<Feature> inputs = InputsOf(model);
  if (!source.weights.empty())
    inputs.push_back({.name = "sample weights", .type = FeatureType::kWeight});
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, OpenDataset(source, inputs));
  const Shape& output = model.value(model.outputs()[0]).shape;
  SHOAL_RETURN_IF_ERROR(
      CheckLabelShape(loss, output, dataset->label_shape(), dataset->LabelSource()));
  SHOAL_RETURN_IF_ERROR(CheckFirstLabels(*dataset, CheckedLabelCount(*dataset), loss, output.back(),
                                         dataset->LabelSource()));
  return dataset;
}

uint64_t CheckedLabelCount(const Dataset& dataset) {
  const uint64_t bytes = dataset.bytes_for_label();
  const uint64_t most =
      bytes == 0 ? kMaxLabels : std::clamp<uint64_t>(kMaxRecordBytes / bytes, 1, kMaxRecords);
  return std::min({dataset.size(), most, kMaxNumbers / NumbersOfLabel(dataset)});
}

std::set<size_t> Uint8InputsOf(std::initializer_list<const Dataset*> data) {
  std::optional<std::set<size_t>> everywhere;
  for (const Dataset* const dataset : data) {
    if (dataset == nullptr) continue;
    std::set<size_t> here;
    for (size_t i = 0; i < dataset->features().size(); ++i) {
      const Feature& feature = dataset->features()[i];
      const bool elsewhere = !everywhere.has_value() || everywhere->contains(i);
      if (feature.bytes && AnyByteIsRight(feature) && elsewhere) here.insert(i);
    }
    everywhere = std::move(here);
  }
  return everywhere.value_or(std::set<size_t>());
}

}  // namespace shoal
