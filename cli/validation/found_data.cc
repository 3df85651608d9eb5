#include "cli/validation/found_data.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/job/job_strategy.h"
#include "common/loss/keras_loss.h"
#include "worker/input/files/joined_errors.h"
#include "worker/job/job_data.h"
#include "worker/job/job_model.h"
#include "worker/job/job_names.h"

namespace shoal {

std::string DescribeClasses(const std::vector<std::string>& names, const Loss& loss,
                            const Shape& output) {
  constexpr size_t kMaxNames = 10;
  if (names.empty()) return "";
  const size_t shown = std::min(names.size(), kMaxNames);
  std::string text = absl::StrCat(names.size(), names.size() == 1 ? " class: " : " classes: ",
                                  absl::StrJoin(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  const auto outputs = static_cast<size_t>(output.back());
  if (loss.target() == Loss::Target::kClassNumber && outputs > names.size()) {
    absl::StrAppend(&text, "; the model has ", outputs, " outputs, one for each class: the last ",
                    outputs - names.size(),
                    outputs - names.size() == 1 ? " has no class" : " have no class");
  }
  return text;
}

absl::StatusOr<FoundData> CheckData(const Job& job, const KerasModel& model) {
  SHOAL_ASSIGN_OR_RETURN(const JobModel computed, JobModel::Of(job, model));
  const std::shared_ptr<const KerasLoss>& loss = computed.loss;
  FoundData found;
  const auto check = [&](const DataSource& source, std::optional<uint64_t>* examples) {
    const auto dataset = OpenJobData(source, *loss, model.graph);
    if (!dataset.ok()) return dataset.status();
    *examples = (*dataset)->size();
    found.memory = found.memory + (*dataset)->memory();
    if (const uint64_t seen = CheckedLabelCount(**dataset); seen < (*dataset)->size()) {
      absl::StrAppend(&found.not_read_all, (*dataset)->LabelSource(), ": checked the first ", seen,
                      " of ", (*dataset)->size(), " labels; training checks the others\n");
    }
    return absl::OkStatus();
  };
  SHOAL_RETURN_IF_ERROR(CheckClassesOfTraining(job));
  absl::Status status = check(job.training, &found.training_examples);
  if (!job.test.empty()) {
    const absl::StatusOr<DataSource> test = WithNamesOfJob(job, job.test);
    status = JoinErrors(status, test.ok() ? check(*test, &found.test_examples) : test.status());
  }
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  if (found.training_examples.has_value()) {
    const BatchPlan plan = BatchPlanOf(job, *found.training_examples);
    SHOAL_RETURN_IF_ERROR(CheckRounds(job, plan.steps().steps_per_epoch()));
  }
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> classes, ClassNamesOfJob(job));
  const Graph& graph = model.graph;
  found.classes = DescribeClasses(classes, *loss, graph.value(graph.outputs().front()).shape);
  found.missing = std::string(status.message());
  return found;
}

}  // namespace shoal
