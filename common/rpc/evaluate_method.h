#pragma once

namespace shoal {

// The method of an evaluator's stream to the coordinator (proto/evaluator.proto).
inline constexpr char kEvaluateMethod[] = "/shoal.proto.Evaluation/Evaluate";

}  // namespace shoal
