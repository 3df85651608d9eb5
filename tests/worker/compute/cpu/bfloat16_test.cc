// Layers under mixed_bfloat16 on a CPU with bfloat16, and on one without.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/cpu/cpu_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

// Large enough that the CPU's product is not one of those that it computes in float32.
constexpr int64_t kUnits = 256;
constexpr int64_t kExamples = 4;

// A Dense layer of `type`, then one in float32.
Graph TwoDense(ComputeDtype type) {
  ModelBuilding model({kBatch, kUnits});
  return model.ComputeIn(type)
      .Dense(kUnits, false)
      .ComputeIn(ComputeDtype::kFloat32)
      .Dense(2)
      .Build();
}

// The prediction for inputs that bfloat16 rounds to 1. All weights are 2^-8; the bias is 0.
std::vector<float> Predict(ComputeDtype type) {
  const auto runner =
      GraphRunner::Create({.model = TwoDense(type), .loss = kSparse}, CreateCpuBackend());
  EXPECT_TRUE(runner.ok()) << runner.status();
  if (!runner.ok()) return {};
  std::vector<float> parameters((*runner)->layout().size, 0x1p-8f);
  for (const auto& variable : (*runner)->layout().variables) {
    if (variable.size == 2) std::fill_n(parameters.begin() + variable.offset, 2, 0.0f);
  }
  const std::vector<float> input(kExamples * kUnits, 1 + 0x1p-10f);
  const auto predicted =
      (*runner)->Predict({.examples = kExamples, .inputs = {input}}, parameters, false);
  EXPECT_TRUE(predicted.ok()) << predicted.status();
  return predicted.ok() ? *predicted : std::vector<float>();
}

bool HasBfloat16() {
  return ComputeDtypesOf(*CreateCpuBackend()).contains(ComputeDtype::kBfloat16);
}

TEST(CpuBfloat16Test, ALayerReadsWhatBfloat16Keeps) {
  if (!HasBfloat16()) GTEST_SKIP() << "This CPU has no bfloat16.";
  EXPECT_EQ(Predict(ComputeDtype::kBfloat16), std::vector<float>(2 * kExamples, 1));
}

TEST(CpuBfloat16Test, AFloat32LayerKeepsAllBits) {
  EXPECT_EQ(Predict(ComputeDtype::kFloat32), std::vector<float>(2 * kExamples, 1 + 0x1p-10f));
}

// float16 is in no CPU that oneDNN knows.
TEST(CpuBfloat16Test, TypesThatTheCpuLacksAreFloat32) {
  EXPECT_EQ(Predict(ComputeDtype::kFloat16), std::vector<float>(2 * kExamples, 1 + 0x1p-10f));
  if (HasBfloat16()) return;
  EXPECT_EQ(Predict(ComputeDtype::kBfloat16), std::vector<float>(2 * kExamples, 1 + 0x1p-10f));
}

TEST(CpuBfloat16Test, OneLineNamesTheLayersThatAreFloat32) {
  const auto backend = CreateCpuBackend();
  const std::string said = DescribePrecision(*backend, TwoDense(ComputeDtype::kBfloat16));
  if (HasBfloat16()) {
    EXPECT_EQ(said, "");
  } else {
    EXPECT_THAT(said, HasSubstr("bfloat16 (layer "));
  }
}

}  // namespace
}  // namespace shoal
