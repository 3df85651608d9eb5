#include "worker/job_data.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/loss_attributes.h"

namespace shoal {

absl::Status CheckModelOfJob(const KerasModel& model) {
  const size_t inputs = model.graph.inputs().size(), outputs = model.graph.outputs().size();
  if (inputs == 1 && outputs == 1) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "model ", model.name, " has ", inputs, inputs == 1 ? " input" : " inputs", " and ", outputs,
      outputs == 1 ? " output" : " outputs", "; a job has data for one of each"));
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenJobData(const Job::DataSource& source,
                                                     const LossAttributes& loss,
                                                     const Graph& model) {
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset,
                         OpenDataset(source, model.value(model.inputs()[0]).shape));
  SHOAL_RETURN_IF_ERROR(CheckLabels(loss, model.value(model.outputs()[0]).shape,
                                    dataset->label_shape(), source.labels));
  return dataset;
}

}  // namespace shoal
