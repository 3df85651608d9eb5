#include "worker/compute/plan/passes/passes.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/compute/plan/passes/folded_padding.h"
#include "worker/compute/plan/passes/unused_borders.h"

namespace shoal {
namespace {

void ReplaceUnsupportedDtypes(const Supports& supports, Plan& plan) {
  std::vector<Node> nodes = plan.nodes();
  for (Node& node : nodes) {
    if (!supports(node)) node.compute_dtype = ComputeDtype::kFloat32;
  }
  plan.SetNodes(std::move(nodes));
}

}  // namespace

absl::StatusOr<Graph> RewriteModel(const Graph& model) {
  SHOAL_ASSIGN_OR_RETURN(const Graph cropped, CropUnusedBorders(model));
  return FoldPadding(cropped);
}

void RunPasses(const Supports& supports, Plan& plan) {
  ReplaceUnsupportedDtypes(supports, plan);
#define PASS(NAME) ApplyFusions(NAME, supports, plan);
#include "worker/compute/plan/passes/pass_list.inc"
#undef PASS
}

}  // namespace shoal
