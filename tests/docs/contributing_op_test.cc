// docs/contributing/adding-a-kind.md, "An op": what the page shows is built into this program.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/model/ops/cube.h"
#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/tested_backends.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {
namespace {

TEST(ContributingTest, TheOpOfThePageIsComputedByEveryBackend) {
  for (const std::string& backend : TestedBackends()) {
    SCOPED_TRACE(backend);
    Graph graph;
    const ValueId variable = graph.AddVariable({.name = "v", .shape = {1, 3}});
    const ValueId cube = *graph.Add(std::make_shared<CubeOp>(), {variable}, "cube");
    graph.SetOutputs({cube});
    const auto runner =
        CreateModelRunner({.model = graph, .loss = LossOf("MeanSquaredError"), .backend = backend});
    ASSERT_TRUE(runner.ok()) << runner.status();
    std::vector<float> parameters((*runner)->layout().size), gradients(parameters.size());
    parameters[0] = 1;
    parameters[1] = -2;
    const std::vector<float> target = {0, 0, 0};
    const Batch batch = {.examples = 1, .inputs = {}, .target = target};
    const auto result = (*runner)->Train(batch, 0, parameters, gradients, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FLOAT_EQ(result->loss_sum, (1 + 64) / 3.0);
    EXPECT_FLOAT_EQ(gradients[0], 2.0 / 3 * 1 * 3);
    EXPECT_FLOAT_EQ(gradients[1], 2.0 / 3 * -8 * 12);
    EXPECT_FLOAT_EQ(gradients[2], 0);
  }
}

}  // namespace
}  // namespace shoal
