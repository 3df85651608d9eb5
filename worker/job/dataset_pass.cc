#include "worker/job/dataset_pass.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/job/data_error.h"

namespace shoal {

Batch BatchOf(const LoadedBatch& loaded, const std::string& label_source) {
  std::vector<InputValues> inputs(loaded.inputs.begin(), loaded.inputs.end());
  for (const auto& [input, bytes] : loaded.uint8_inputs) inputs[input] = bytes;
  return {.examples = static_cast<int64_t>(loaded.examples),
          .inputs = std::move(inputs),
          .target = loaded.targets,
          .target_file = label_source,
          .indices = loaded.indices,
          .weights = loaded.weights,
          .id = loaded.id};
}

void AddBatch(const BatchResult& next, BatchResult* sums) {
  sums->examples += next.examples;
  sums->loss_sum += next.loss_sum;
  sums->metric_sums.resize(next.metric_sums.size());
  for (size_t i = 0; i < next.metric_sums.size(); ++i) sums->metric_sums[i] += next.metric_sums[i];
}

DatasetPass::DatasetPass(std::shared_ptr<const Dataset> dataset, int64_t batch_size,
                         std::set<size_t> uint8_inputs)
    : plan_(dataset->size(), static_cast<uint64_t>(batch_size), /*epochs=*/1, /*steps=*/0),
      label_source_(dataset->LabelSource()),
      source_({.dataset = std::move(dataset),
               .plan = plan_,
               .shuffle = false,
               .uint8_inputs = std::move(uint8_inputs)}) {}

absl::StatusOr<BatchResult> DatasetPass::Evaluate(uint64_t batch, std::span<const float> parameters,
                                                  ModelRunner* runner) {
  auto loaded = source_.Take(batch);
  if (!loaded.ok()) return DataError(loaded.status());
  absl::StatusOr<BatchResult> result =
      runner->Evaluate(BatchOf(**loaded, label_source_), parameters);
  source_.Recycle(*std::move(loaded));
  if (!result.ok()) return BatchError(result.status());
  return result;
}

absl::StatusOr<std::vector<float>> DatasetPass::Predict(uint64_t batch,
                                                        std::span<const float> parameters,
                                                        ModelRunner* runner) {
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<LoadedBatch> loaded, source_.Take(batch));
  absl::StatusOr<std::vector<float>> output =
      runner->Predict(BatchOf(*loaded, label_source_), parameters, /*training=*/false);
  source_.Recycle(std::move(loaded));
  return output;
}

}  // namespace shoal
