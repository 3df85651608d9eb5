#include "cli/golden_case/golden_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/model/ops/dense.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/model/test_models.h"
#include "tests/worker/compute/tested_backends.h"
#include "worker/compute/registry/backends.h"

namespace shoal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const std::string kGolden = std::string(SHOAL_SOURCE_DIR) + "/tests/golden/";

int CountPrefix(const std::vector<GoldenRow>& rows, const std::string& prefix) {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), [&](const GoldenRow& row) {
    return row.what.rfind(prefix, 0) == 0 && row.not_supported.empty();
  }));
}

// Bounds of bfloat16, of the largest value of a tensor (GoldenRow::largest_relative_error).
constexpr double kBfloat16Outputs = 0.05;
constexpr double kBfloat16Gradients = 0.1;
// For models where rounding moves values across a ReLU's kink or changes the maximum of a window.
constexpr double kBfloat16KinkedGradients = 0.9;
const std::set<std::string> kKinked = {"bottleneck",
                                       "fashion_cnn",
                                       "inverted_residual",
                                       "keras2_fashion_cnn",
                                       "keras2_inverted_residual",
                                       "shared_normalization"};

class GoldenCaseTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(GoldenCaseTest, EqualsKeras) {
  const auto& [name, backend] = GetParam();
  const auto rows = VerifyGoldenCase(kGolden + name, backend);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(CountPrefix(*rows, "output/"), 2);
  EXPECT_EQ(CountPrefix(*rows, "loss"), 1);
  EXPECT_GE(CountPrefix(*rows, "gradient/"), 2);
  EXPECT_GE(CountPrefix(*rows, "after/"), 3);
  for (const GoldenRow& row : *rows) {
    if (!row.not_supported.empty()) continue;
    EXPECT_TRUE(row.ok) << row.what << " is off by " << row.largest_relative_error << " of "
                        << row.tolerance << " " << row.left_over;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenCaseTest,
                         ::testing::Combine(::testing::ValuesIn(GoldenCases()),
                                            ::testing::ValuesIn(TestedBackends())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

// The same in bfloat16, which keeps 8 bits of each value. Outputs, loss and gradients only: an
// optimizer divides by small gradients.
class GoldenBfloat16Test : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenBfloat16Test, IsNearKeras) {
  const auto backend = CreateBackend("cpu");
  ASSERT_TRUE(backend.ok()) << backend.status();
  if (!(*backend)->Supports(
          {.op = std::make_shared<DenseOp>(), .compute_dtype = ComputeDtype::kBfloat16}))
    GTEST_SKIP() << "This CPU has no bfloat16.";
  const auto rows = VerifyGoldenCase(kGolden + GetParam(), "cpu", ComputeDtype::kBfloat16);
  ASSERT_TRUE(rows.ok()) << rows.status();
  int compared = 0;
  for (const GoldenRow& row : *rows) {
    if (row.what.starts_with("after/") || !row.left_over.empty()) continue;
    ++compared;
    const double of_gradients =
        kKinked.contains(GetParam()) ? kBfloat16KinkedGradients : kBfloat16Gradients;
    const bool is_gradient = row.what.starts_with("gradient/");
    EXPECT_LE(row.largest_relative_error, is_gradient ? of_gradients : kBfloat16Outputs)
        << row.what;
  }
  EXPECT_GE(compared, 4);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenBfloat16Test, ::testing::ValuesIn(GoldenCases()),
                         [](const auto& info) { return info.param; });

// A copy of a case that a test can change.
class ChangedCaseTest : public ::testing::Test {
 protected:
  ChangedCaseTest() {
    std::filesystem::copy(kGolden + "mlp", directory_);
    // The originals may be read-only.
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_all);
    }
  }

  void Write(const std::string& file, const std::string& text) {
    std::ofstream(directory_ / file, std::ios::trunc) << text;
  }
  std::string Read(const std::string& file) { return FileContent(directory_ / file); }
  void Replace(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = Read(file);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    Write(file, text.replace(at, from.size(), to));
  }
  // Why nothing was compared with a tensor, by its name.
  std::map<std::string, std::string> LeftOver() {
    const auto rows = VerifyGoldenCase(directory_.string(), "reference");
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::map<std::string, std::string> left_over;
    for (const GoldenRow& row : rows.ok() ? *rows : std::vector<GoldenRow>()) {
      if (row.left_over.empty()) continue;
      EXPECT_FALSE(row.ok) << row.what;
      left_over[row.what] = row.left_over;
    }
    return left_over;
  }
  absl::Status Verify() { return VerifyGoldenCase(directory_.string(), "reference").status(); }

  const TemporaryDirectory temporary_;
  const std::filesystem::path directory_ = temporary_.path();
};

TEST_F(ChangedCaseTest, AnOptimizerThatShoalLacksIsNamed) {
  Replace("case.json", "\"class_name\": \"Adam\"", "\"class_name\": \"Muon\"");
  const auto rows = VerifyGoldenCase(directory_.string(), "reference");
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto named = std::find_if(rows->begin(), rows->end(),
                                  [](const GoldenRow& row) { return !row.not_supported.empty(); });
  ASSERT_NE(named, rows->end());
  EXPECT_THAT(named->not_supported, HasSubstr("Muon"));
  EXPECT_FALSE(named->ok);
  // The others are compared.
  EXPECT_GE(CountPrefix(*rows, "after/"), 3);
}

TEST_F(ChangedCaseTest, AnUnknownLossIsUnimplementedByName) {
  Replace("case.json", "SparseCategoricalCrossentropy", "CTC");
  EXPECT_EQ(Verify().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Verify().ToString(), HasSubstr("CTC"));
  EXPECT_THAT(Verify().ToString(), HasSubstr("case.json"));
}

// As `shoal validate` does for a job.
TEST_F(ChangedCaseTest, AMeanByWeightsIsRejectedWhereThereAreWeights) {
  Replace("case.json", "\"from_logits\": false",
          "\"from_logits\": false, \"reduction\": \"mean_with_sample_weight\"");
  EXPECT_TRUE(Verify().ok()) << Verify();
  Replace("case.json", "\"steps\"", "\"class_weight\": {\"0\": 2.0}, \"steps\"");
  EXPECT_EQ(Verify().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Verify().ToString(),
              HasSubstr("case.json: $.loss.config.reduction: is \"mean_with_sample_weight\""));
}

TEST_F(ChangedCaseTest, AnUnknownLayerIsUnimplementedByName) {
  Replace("model.json", "\"class_name\": \"Dense\"", "\"class_name\": \"Lambda\"");
  EXPECT_EQ(Verify().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Verify().ToString(), HasSubstr("Lambda"));
  EXPECT_THAT(Verify().ToString(), HasSubstr("model.json"));
}

TEST_F(ChangedCaseTest, FieldsOfTheCaseAreChecked) {
  Replace("case.json", "\"steps\": 3", "\"steps\": -3");
  EXPECT_EQ(Verify().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Verify().ToString(), HasSubstr("$.steps"));
  Write("case.json", "{}");
  EXPECT_THAT(Verify().ToString(), HasSubstr("$.loss"));
  Write("case.json", "[");
  EXPECT_THAT(Verify().ToString(), HasSubstr("case.json"));
}

TEST_F(ChangedCaseTest, MissingTensorsAndFilesAreNamed) {
  Replace("case.safetensors", "\"weights/dense/bias\"", "\"weights/dense/bia5\"");
  EXPECT_THAT(Verify().ToString(), HasSubstr("no tensor \"weights/dense/bias\""));
  std::filesystem::remove(directory_ / "case.safetensors");
  EXPECT_THAT(Verify().ToString(), HasSubstr("case.safetensors"));
  EXPECT_EQ(VerifyGoldenCase("/nowhere", "cpu").status().code(), absl::StatusCode::kNotFound);
}

// What Keras computed and nothing was compared with.
TEST_F(ChangedCaseTest, TensorsLeftOverAreNamed) {
  EXPECT_THAT(LeftOver(), IsEmpty());
  // The first layer, not the model.
  Replace("model.json", "     \"trainable\": true", "     \"trainable\": false");
  EXPECT_THAT(LeftOver(), ElementsAre(Pair("gradient/dense/bias", HasSubstr("update")),
                                      Pair("gradient/dense/kernel", HasSubstr("update"))));
}

TEST_F(ChangedCaseTest, TensorsOfNothingKnownAreLeftOver) {
  Json golden = Json::parse(Read("case.json"));
  golden["optimizers"].erase("adam");
  Write("case.json", golden.dump());
  EXPECT_THAT(LeftOver(), Contains(Pair("after/adam/loss", HasSubstr("this name"))));
  EXPECT_THAT(LeftOver(), SizeIs(7));
  // That Shoal lacks the optimizer is said once.
  golden["optimizers"]["adam"] = {{"class_name", "Muon"}, {"config", Json::object()}};
  Write("case.json", golden.dump());
  EXPECT_THAT(LeftOver(), IsEmpty());
}

TEST_F(ChangedCaseTest, AWrongValueIsSeen) {
  // The last tensor of the file gets another value.
  std::string file = Read("case.safetensors");
  file[file.size() - 1] ^= 0x40;
  Write("case.safetensors", file);
  const auto rows = VerifyGoldenCase(directory_.string(), "reference");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(
      std::any_of(rows->begin(), rows->end(), [](const GoldenRow& row) { return !row.ok; }));
}

}  // namespace
}  // namespace shoal
