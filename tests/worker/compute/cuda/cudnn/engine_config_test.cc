// Which of cuDNN's engines may compute, and how a choice is written.

#include "worker/compute/cuda/cudnn/engine_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/fails_with.h"

namespace shoal::cuda {
namespace {

TEST(EngineConfigTest, TheTextIsReadBack) {
  for (const EngineConfig& config :
       {EngineConfig{.engine = 0}, EngineConfig{.engine = 62, .knobs = {{2, 0}, {13, -1}}}}) {
    EXPECT_EQ(ParseEngineConfig(EngineConfigText(config)), config);
  }
  EXPECT_EQ(EngineConfigText({.engine = 62, .knobs = {{2, 0}, {13, -1}}}), "62 2=0 13=-1");
  for (const char* text : {"", "x", "62 ", "62 2", "62 2=", "62 2=0=1", "62 2=0  3=1", "62 2=0x"}) {
    EXPECT_EQ(ParseEngineConfig(text), std::nullopt) << text;
  }
}

TEST(EngineConfigTest, Float32IsNotReadAsTf32UnlessThatIsAskedFor) {
  const EngineNotes notes = {.tensor_cores = true};
  EXPECT_FALSE(MayCompute(notes, ComputeDtype::kFloat32, {}));
  EXPECT_TRUE(MayCompute(notes, ComputeDtype::kFloat32, {.tf32 = true}));
  EXPECT_TRUE(MayCompute(notes, ComputeDtype::kBfloat16, {}));
  EXPECT_TRUE(MayCompute(notes, ComputeDtype::kFloat16, {}));
  EXPECT_TRUE(MayCompute({}, ComputeDtype::kFloat32, {}));
}

TEST(EngineConfigTest, SumsAreInFloat32) {
  for (const EngineNotes& notes : {EngineNotes{.converts_inputs_down = true},
                                   EngineNotes{.adds_in_less_than_float32 = true}}) {
    for (const ComputeDtype type :
         {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
      EXPECT_FALSE(MayCompute(notes, type, {.tf32 = true}));
    }
  }
}

TEST(EngineConfigTest, LeavesOutWhatIsNotDeterministicWhereThatIsAskedFor) {
  const EngineNotes notes = {.nondeterministic = true};
  EXPECT_TRUE(MayCompute(notes, ComputeDtype::kBfloat16, {}));
  EXPECT_FALSE(MayCompute(notes, ComputeDtype::kBfloat16, {.deterministic = true}));
  EXPECT_TRUE(MayCompute({}, ComputeDtype::kBfloat16, {.deterministic = true}));
}

// Something else may compute what cuDNN has no engine for, but not where all would fail.
TEST(EngineConfigTest, AFailureOfTheDeviceIsNotOneOfTheEngine) {
  const absl::Status unknown = absl::InternalError("BAD_PARAM"),
                     large = absl::ResourceExhaustedError("an engine needs 2.0 GiB"),
                     lost = absl::UnavailableError("EXECUTION_FAILED_CUDART"),
                     damaged = absl::FailedPreconditionError("SUBLIBRARY_LOADING_FAILED");
  EXPECT_THAT(NoEngine("none for x", {}),
              FailsWith(absl::StatusCode::kUnimplemented, {"none for x: "}));
  EXPECT_EQ(NoEngine("none for x", {unknown, large}),
            absl::UnimplementedError("none for x: an engine needs 2.0 GiB"));
  EXPECT_EQ(NoEngine("none for x", {lost, unknown}), lost);
  EXPECT_EQ(NoEngine("none for x", {large, damaged, unknown}), damaged);
}

}  // namespace
}  // namespace shoal::cuda
