#include "worker/step/worker_momentum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using testing::ElementsAre;

TEST(WorkerMomentumTest, PushesTheGradientAndWhatItHasOfThoseBefore) {
  WorkerMomentum momentum(0.5, 4);
  std::vector<float> gradients = {1, 2};
  momentum.Take(1, gradients);
  EXPECT_THAT(gradients, ElementsAre(1.5, 3)) << "v = g";
  gradients = {4, 0};
  momentum.Take(1, gradients);
  EXPECT_THAT(gradients, ElementsAre(4 + 0.5 * 4.5, 0.5 * 1)) << "v = 0.5 v + g";
  gradients = {1};
  momentum.Take(3, gradients);
  EXPECT_THAT(gradients, ElementsAre(1.5)) << "another one's";
  momentum.Forget();
  gradients = {1, 2};
  momentum.Take(1, gradients);
  EXPECT_THAT(gradients, ElementsAre(1.5, 3));
}

}  // namespace
}  // namespace shoal
