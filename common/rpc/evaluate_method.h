#pragma once

namespace shoal {

// What an evaluator opens at the coordinator (proto/evaluator.proto).
inline constexpr char kEvaluateMethod[] = "/shoal.proto.Evaluation/Evaluate";

}  // namespace shoal
