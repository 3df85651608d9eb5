#include "worker/compute/plan/passes/passes.h"

#include "common/base/status_macros.h"
#include "worker/compute/plan/passes/element_types.h"
#include "worker/compute/plan/passes/folded_padding.h"
#include "worker/compute/plan/passes/unused_borders.h"

namespace shoal {
absl::StatusOr<Graph> RewriteModel(const Graph& model) {
  SHOAL_ASSIGN_OR_RETURN(const Graph cropped, CropUnusedBorders(model));
  return FoldPadding(cropped);
}

void RunPasses(const Supports& supports, Plan& plan) {
  ReplaceUnsupportedDtypes(supports, plan);
#define PASS(NAME) ApplyFusions(NAME, supports, plan);
#include "worker/compute/plan/passes/pass_list.inc"
#undef PASS
  ChooseElementTypes(plan);
}

}  // namespace shoal
