#include "worker/compute/cuda/cudnn/convolution_planner.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"
#include "worker/compute/cuda/cudnn/convolution_check.h"

namespace shoal::cuda {

absl::StatusOr<ConvolutionPlan> ConvolutionPlanner::TryEngine(const ConvolutionGraph& graph,
                                                              const ConvolutionDemands& demands,
                                                              Engine engine,
                                                              const NodeName& node) const {
  if (!MayCompute(engine.notes, graph.x.type, demands)) {
    return absl::UnimplementedError("no engine is as precise and deterministic as the job asks");
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

absl::StatusOr<std::vector<ConvolutionPlan>> ConvolutionPlanner::Suggest(
    const ConvolutionGraph& graph, const OperationGraph& operations,
    const ConvolutionDemands& demands, size_t max, const NodeName& node) const {
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
    if (plans.size() == max) break;
  }
  if (plans.empty()) {
    return NoEngine(absl::StrCat(CallText(options_.library->name(), node), " has no engine on ",
                                 options_.device->name(), " for ", GraphText(graph)),
                    failures);
  }
  return plans;
}

absl::StatusOr<ConvolutionPlan> ConvolutionPlanner::Plan(const ConvolutionGraph& graph,
                                                         const ConvolutionDemands& demands,
                                                         const NodeName& node) {
  SHOAL_ASSIGN_OR_RETURN(const OperationGraph operations,
                         OperationGraph::Create(*options_.library, graph, node));
  AlgorithmOffer<ConvolutionPlan> offer = {.libraries = options_.library->name(),
                                           .work = GraphText(graph)};
  offer.make = [&](const std::string& choice) -> absl::StatusOr<ConvolutionPlan> {
    const std::optional<EngineConfig> config = ParseEngineConfig(choice);
    if (!config.has_value()) return absl::InvalidArgumentError(choice + " names no engine");
    SHOAL_ASSIGN_OR_RETURN(
        Engine engine, MakeEngine(*options_.library, *options_.device, operations, *config, node));
    return TryEngine(graph, demands, std::move(engine), node);
  };
  offer.suggest = [&](size_t max) { return Suggest(graph, operations, demands, max, node); };
  offer.measure = [&, check = ConvolutionCheck(graph)](
                      ConvolutionPlan& plan) mutable -> absl::StatusOr<AlgorithmTrial> {
    SHOAL_ASSIGN_OR_RETURN(AlgorithmTrial trial, options_.measure(plan));
    if (!trial.sample.empty()) SHOAL_RETURN_IF_ERROR(check.Check(trial));
    return trial;
  };
  offer.checked = demands.checked;
  return ChooseAlgorithm(demands.deterministic ? nullptr : options_.tuner, offer);
}

}  // namespace shoal::cuda
