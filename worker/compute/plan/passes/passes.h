#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/compute/plan/fusion.h"
#include "worker/compute/plan/plan.h"

// Passes make a model faster on every backend that has the kernels. element_types.h is about types.
// A fusion is one file of this folder: its function is of type FindFusion, and pass_list.inc names
// it. Fused ops are in plan/fused_ops.h.

namespace shoal {

// Returns a model that computes the same with less work: same inputs, variables and outputs.
absl::StatusOr<Graph> RewriteModel(const Graph& model);

// Makes the plan's nodes final: gives float32 to nodes whose compute dtype the backend lacks, puts
// fused nodes that it supports into the plan, then chooses the type of each value
// (element_types.h).
void RunPasses(const Supports& supports, Plan& plan);

#define PASS(NAME) std::optional<Fusion> NAME(const Plan& plan, int index);
#include "worker/compute/plan/passes/pass_list.inc"
#undef PASS

}  // namespace shoal
