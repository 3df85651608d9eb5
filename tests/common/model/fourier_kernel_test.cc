#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/model/initializer.h"
#include "tests/common/model/test_models.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A convolution whose kernel that initializer makes.
Json Model(const Json& initializer, int64_t length, int64_t frequencies, int64_t channels = 1) {
  return SequentialJson({nullptr, 20, channels},
                        {LayerJson("Conv1D", "conv",
                                   {{"filters", frequencies},
                                    {"kernel_size", length},
                                    {"use_bias", false},
                                    {"kernel_initializer", initializer}})});
}

// What keras.initializers.STFT makes (testdata/make_keras_stft.py), whole and in parts.
TEST(FourierKernelTest, IsThatOfKeras) {
  const Json known = Json::parse(ReadText("common/model/testdata/keras_stft.json"));
  for (const Json& kernel : known["cases"]) {
    SCOPED_TRACE(kernel.dump());
    Json config = kernel;
    config.erase("length");
    config.erase("values");
    const auto length = kernel["length"].get<int64_t>();
    const auto frequencies = known["frequencies"].get<int64_t>();
    const auto model = ParseKerasModel(
        Model({{"class_name", "STFT"}, {"config", config}}, length, frequencies).dump());
    ASSERT_TRUE(model.ok()) << model.status();
    const Variable& variable = model->graph.variables()[0];
    ASSERT_EQ(variable.shape, (Shape{length, 1, frequencies}));
    const auto expected = kernel["values"].get<std::vector<float>>();
    for (int64_t begin = 0; begin < length; ++begin) {
      std::vector<float> rows((length - begin) * frequencies);
      InitializeRows(variable.initializer, variable.name, variable.shape, /*job_seed=*/1, begin,
                     length, rows);
      for (size_t i = 0; i < rows.size(); ++i)
        EXPECT_NEAR(rows[i], expected[begin * frequencies + i], 1e-6) << begin << ", " << i;
    }
  }
}

TEST(FourierKernelTest, ByItsNameItHasTheDefaultsOfKeras) {
  const auto first_value = [](const Json& initializer) {
    const auto model = ParseKerasModel(Model(initializer, 5, 4).dump());
    EXPECT_TRUE(model.ok()) << model.status();
    const Variable& variable = model->graph.variables()[0];
    std::vector<float> values(20);
    InitializeRows(variable.initializer, variable.name, variable.shape, 1, 0, 5, values);
    return values[8];
  };
  const float hann = first_value({{"class_name", "STFTInitializer"},
                                  {"config", {{"window", "hann"}, {"scaling", "density"}}}});
  EXPECT_NE(hann, 1.0f);
  EXPECT_EQ(first_value("stft"), hann);
}

TEST(FourierKernelTest, AnUnsupportedKernelIsNamed) {
  const auto error = [](const Json& config, int64_t frequencies, int64_t channels = 1) {
    const Json model =
        Model({{"class_name", "STFT"}, {"config", config}}, 5, frequencies, channels);
    return std::string(ParseKerasModel(model.dump()).status().message());
  };
  const std::string path = "$.config.layers[1].config.kernel_initializer";
  EXPECT_THAT(error({{"window", "hanning"}}, 4),
              AllOf(HasSubstr(path + ".config.window: "), HasSubstr("\"hanning\""),
                    HasSubstr("\"hamming\"")));
  EXPECT_THAT(error({{"window", {1, 2}}}, 4),
              AllOf(HasSubstr(path + ".config.window: "), HasSubstr("(5, 1, 4)")));
  EXPECT_THAT(error({{"window", Json::array()}}, 4), HasSubstr(path + ".config.window"));
  EXPECT_THAT(error({{"side", "left"}}, 4), HasSubstr(path + ".config.side"));
  EXPECT_THAT(error(Json::object(), 1), HasSubstr(path + ": "));
  EXPECT_THAT(error(Json::object(), 4, 3), HasSubstr("(5, 3, 4)"));
}

}  // namespace
}  // namespace shoal
