#include "cli/reports/model_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/model/test_models.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

// The .summary files are what model.summary() of Keras 3.15 printed for the models beside them.
TEST(SummaryTest, IsTheTableOfKeras) {
  for (const auto& [model_file, summary_file] : {std::pair{"sequential.json", "sequential.summary"},
                                                 {"late.json", "late.summary"},
                                                 {"residual_keras3.json", "residual.summary"}}) {
    const std::string folder = "common/model/testdata/";
    const absl::StatusOr<KerasModel> model = ParseKerasModel(ReadText(folder + model_file));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(SummarizeModel(*model), ReadText(folder + summary_file));
  }
}

TEST(SummaryTest, CountsFrozenParameters) {
  const auto model = ParseKerasModel(
      SequentialJson({nullptr, 4}, {LayerJson("Dense", "a", {{"units", 255}, {"trainable", false}}),
                                    LayerJson("Dense", "b", {{"units", 2}})})
          .dump());
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string text = SummarizeModel(*model);
  EXPECT_THAT(text, HasSubstr(" Total params: 1,787 (6.98 KB)\n"));
  EXPECT_THAT(text, HasSubstr(" Trainable params: 512 (2.00 KB)\n"));
  EXPECT_THAT(text, HasSubstr(" Non-trainable params: 1,275 (4.98 KB)\n"));
}

TEST(SummaryTest, LongAndForeignNamesKeepTheFrame) {
  const auto model = ParseKerasModel(
      SequentialJson({nullptr, 4}, {LayerJson("ReLU", "a_name_that_is_much_too_long_for_its_column",
                                              Json::object()),
                                    LayerJson("ReLU", "größe", Json::object())})
          .dump());
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string text = SummarizeModel(*model);
  EXPECT_THAT(text, HasSubstr("│ a_name_that_is_much_too_long_f… │ (None, 4)"));
  EXPECT_THAT(text, HasSubstr("│ größe (ReLU)                    │ (None, 4)"));
}

}  // namespace
}  // namespace shoal
