#include "worker/job_model.h"

#include "common/base/status_macros.h"
#include "common/loss/keras_loss.h"
#include "worker/job_data.h"

namespace shoal {

absl::StatusOr<JobModel> JobModel::Of(const Job& job) {
  JobModel computed;
  SHOAL_ASSIGN_OR_RETURN(computed.model, ParseKerasModel(job.model_json));
  SHOAL_RETURN_IF_ERROR(CheckModelOfJob(computed.model));
  SHOAL_ASSIGN_OR_RETURN(computed.loss, MakeLoss(job.loss));
  SHOAL_ASSIGN_OR_RETURN(computed.metrics, MakeMetrics(job.metrics));
  const Graph& graph = computed.model.graph;
  const Shape& output = graph.value(graph.outputs()[0]).shape;
  for (std::shared_ptr<const Metric>& metric : computed.metrics) {
    SHOAL_ASSIGN_OR_RETURN(metric, MetricFor(metric, *computed.loss, output));
  }
  return computed;
}

ModelRunner::Options JobModel::RunnerOptions() const {
  return {.model = model.graph, .loss = loss, .metrics = metrics};
}

}  // namespace shoal
