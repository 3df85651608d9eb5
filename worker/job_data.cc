#include "worker/job_data.h"

#include "common/base/status_macros.h"
#include "worker/loss_attributes.h"

namespace shoal {

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
