#include "worker/job/job_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/job/job_data.h"

namespace shoal {
namespace {

// Checks that each class is one of the output's classes.
absl::Status CheckClassWeights(const std::map<int64_t, double>& weights, const Loss& loss,
                               const Shape& output) {
  if (weights.empty()) return absl::OkStatus();
  if (output.size() > 2) {
    return absl::UnimplementedError(absl::StrCat(
        "$.class_weight: needs one label for each example, but the loss ", loss.class_name(),
        " takes several for the model's output of shape ", ShapeToString(output)));
  }
  const int64_t last = output.size() == 2 ? output.back() : 1;
  const bool numbered = loss.target() == Loss::Target::kClassNumber;
  const int64_t classes = last > 1 || numbered ? last : 2;  // one output means two classes
  const int64_t largest = weights.rbegin()->first;
  if (largest < classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("$.class_weight: names class ", largest, "; the model's output of shape ",
                   ShapeToString(output), " has the classes 0 to ", classes - 1));
}

}  // namespace

absl::StatusOr<JobModel> JobModel::Of(const Job& job) {
  SHOAL_ASSIGN_OR_RETURN(KerasModel model, ParseKerasModel(job.model_json));
  return Of(job, std::move(model));
}

absl::StatusOr<JobModel> JobModel::Of(const Job& job, KerasModel model) {
  JobModel computed;
  computed.model = std::move(model);
  SHOAL_RETURN_IF_ERROR(CheckModelOfJob(computed.model));
  SHOAL_ASSIGN_OR_RETURN(computed.loss, MakeLoss(job.loss));
  SHOAL_ASSIGN_OR_RETURN(computed.metrics, MakeMetrics(job.metrics, job.weighted_metrics));
  computed.metric_names = NamesOf(computed.metrics);
  const Graph& graph = computed.model.graph;
  const Shape& output = graph.value(graph.outputs()[0]).shape;
  for (std::shared_ptr<const Metric>& metric : computed.metrics) {
    SHOAL_ASSIGN_OR_RETURN(metric, MetricFor(metric, *computed.loss, output));
  }
  SHOAL_RETURN_IF_ERROR(CheckClassWeights(job.class_weight, *computed.loss, output));
  computed.weighted = !job.training.weights.empty() || !job.test.weights.empty();
  computed.class_weights = job.class_weight;
  computed.micro_batch_size = job.micro_batch_size;
  return computed;
}

ModelRunner::Options JobModel::RunnerOptions() const {
  return {.model = model.graph,
          .loss = loss,
          .metrics = metrics,
          .weighted = weighted,
          .class_weights = class_weights,
          .micro_batch_size = micro_batch_size};
}

}  // namespace shoal
