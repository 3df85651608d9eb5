#include "worker/compute/cuda/cudnn/convolution_planner.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/format_bytes.h"
#include "common/base/status_macros.h"

namespace shoal::cuda {
namespace {

// The best is nearly always among these; each takes some runs to measure.
constexpr int kMeasuredPlans = 10;

// The fastest of `plans` is all that is left of them, unless none can be measured.
absl::Status LeaveFastest(
    const std::function<absl::StatusOr<double>(ConvolutionPlan& plan)>& measure,
    std::vector<ConvolutionPlan>& plans) {
  std::optional<double> least;
  size_t fastest = 0;
  absl::Status failed;
  for (size_t i = 0; i < plans.size(); ++i) {
    const absl::StatusOr<double> time = measure(plans[i]);
    if (!time.ok()) {
      failed = time.status();
    } else if (!least.has_value() || *time < *least) {
      least = *time;
      fastest = i;
    }
  }
  if (!least.has_value()) return failed;
  std::swap(plans[0], plans[fastest]);
  plans.erase(plans.begin() + 1, plans.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvolutionPlan> ConvolutionPlanner::TryEngine(const ConvolutionGraph& graph,
                                                              const ConvolutionDemands& demands,
                                                              Engine engine,
                                                              const NodeName& node) const {
  if (!MayCompute(engine.notes, graph.x.type, demands)) {
    return absl::UnimplementedError(
        "what there is of engines is less precise or deterministic "
        "than the job asks");
  }
  SHOAL_ASSIGN_OR_RETURN(
      ConvolutionPlan plan,
      ConvolutionPlan::Create(*options_.library, *options_.device, graph, std::move(engine), node));
  if (plan.workspace_bytes() > demands.workspace_limit_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "an engine needs ", FormatBytes(plan.workspace_bytes()), " besides the tensors; ",
        FormatBytes(demands.workspace_limit_bytes), " are allowed"));
  }
  return plan;
}

absl::StatusOr<ConvolutionPlan> ConvolutionPlanner::Plan(const ConvolutionGraph& graph,
                                                         const ConvolutionDemands& demands,
                                                         const NodeName& node) {
  SHOAL_ASSIGN_OR_RETURN(const OperationGraph operations,
                         OperationGraph::Create(*options_.library, graph, node));
  const bool measured = options_.measure != nullptr && !demands.deterministic;
  SHOAL_ASSIGN_OR_RETURN(std::vector<Engine> engines,
                         SuggestEngines(*options_.library, *options_.device, operations, node));
  std::vector<ConvolutionPlan> plans;
  std::vector<absl::Status> failures;
  for (Engine& engine : engines) {
    absl::StatusOr<ConvolutionPlan> plan = TryEngine(graph, demands, std::move(engine), node);
    if (plan.ok()) {
      plans.push_back(*std::move(plan));
    } else {
      failures.push_back(plan.status());
    }
    if (plans.size() == (measured ? kMeasuredPlans : 1)) break;
  }
  if (plans.empty()) {
    return NoEngine(
        absl::StrCat(CallText("cuDNN", node), ": version ", options_.library->version(),
                     " has no engine on ", options_.device->name(), " for ", GraphText(graph)),
        failures);
  }
  if (!measured) return std::move(plans[0]);
  if (absl::Status status = LeaveFastest(options_.measure, plans); !status.ok()) {
    options_.on_warning(absl::StrCat("cuDNN's engines cannot be measured, and the first is taken: ",
                                     std::string(status.message())));
    return std::move(plans[0]);
  }
  return std::move(plans[0]);
}

}  // namespace shoal::cuda
