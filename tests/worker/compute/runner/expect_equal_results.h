#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "worker/compute/runner/model_runner.h"

namespace shoal {

// Expects of a batch in parts the result of the whole batch. Sums of losses may round.
inline void ExpectEqual(const BatchResult& parts, const BatchResult& whole) {
  EXPECT_EQ(parts.examples, whole.examples);
  EXPECT_NEAR(parts.loss_sum, whole.loss_sum, 1e-5 * std::abs(whole.loss_sum));
  EXPECT_EQ(parts.metric_sums, whole.metric_sums);
}

}  // namespace shoal
