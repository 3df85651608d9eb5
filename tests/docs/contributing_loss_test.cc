// docs/contributing/adding-a-kind.md, "A loss": what the page shows is built into this program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/loss/loss_table.h"
#include "common/model/ops/rescale.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/loss/loss_of.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {
namespace {

using testing::Contains;

TEST(ContributingTest, TheLossOfThePageIsReadDocumentedAndComputed) {
  EXPECT_THAT(LossTable().Names(), Contains("Pinball"));
  EXPECT_THAT(LossTable().Names(), Contains("Huber"));
  EXPECT_THAT(LossTable().Docs(true),
              Contains("| `Pinball` | `pinball` | `quantile` (0.5; 0 to 1) |"));
  EXPECT_THAT(MakeLoss(R"({"class_name": "pinball", "config": {"quantile": 2}})").status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"$.loss.config.quantile: is 2;"}));

  Graph graph;
  const ValueId variable = graph.AddVariable({.name = "v", .shape = {2, 1}});
  graph.SetOutputs({*graph.Add(std::make_shared<RescaleOp>(), {variable}, "same")});
  const auto runner = CreateModelRunner(
      {.model = graph, .loss = LossOf("Pinball", R"({"quantile": 0.75})"), .backend = "reference"});
  ASSERT_TRUE(runner.ok()) << runner.status();
  std::vector<float> parameters((*runner)->layout().size), gradients(parameters.size());
  parameters[0] = 1;
  parameters[1] = 5;
  const std::vector<float> target = {3, 4};
  const Batch batch = {.examples = 2, .inputs = {}, .target = target};
  const auto result = (*runner)->Train(batch, 0, parameters, gradients, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FLOAT_EQ(result->loss_sum, 0.75 * 2 + 0.25 * 1);
  EXPECT_FLOAT_EQ(gradients[0], -0.75 / 2);
  EXPECT_FLOAT_EQ(gradients[1], 0.25 / 2);
}

}  // namespace
}  // namespace shoal
