#include "common/saved_model/initial_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/archive/hdf5_layout.h"
#include "common/archive/keras_archive.h"
#include "common/checkpoint/safetensors.h"
#include "common/model/keras_model.h"
#include "tests/common/archive/archive_files.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class InitialWeightsTest : public testing::Test {
 protected:
  std::vector<Variable> Variables() const {
    const absl::StatusOr<KerasModel> model = ParseKerasModel(model_);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? model->graph.variables() : std::vector<Variable>();
  }
  // The k-th number of all variables is k / 4 in every file.
  void ExpectAll(const std::string& path) const {
    SCOPED_TRACE(path);
    const std::vector<Variable> variables = Variables();
    const auto weights = FindInitialWeights(path, model_, variables);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_THAT(weights->missed, IsEmpty()) << weights->ToText();
    float next = 0;
    for (size_t i = 0; i < variables.size(); ++i) {
      std::vector<float> values(ElementCount(variables[i].shape));
      ASSERT_TRUE(ReadSavedValues(weights->saved, *weights->tensors[i], 0, values).ok());
      for (const float value : values) {
        EXPECT_EQ(value, next) << variables[i].name;
        next += 0.25f;
      }
    }
  }
  std::string Text(const std::string& path) const {
    const auto weights = FindInitialWeights(path, model_, Variables());
    return weights.ok() ? weights->ToText() : std::string(weights.status().message());
  }
  void WriteSafetensors(const std::vector<std::pair<std::string, Shape>>& tensors,
                        float value) const {
    const SafetensorsLayout layout = LayOutSafetensors(tensors, {});
    std::string text = layout.header;
    while (text.size() < layout.file_size)
      text.append(reinterpret_cast<const char*>(&value), sizeof(value));
    WriteAll(path_, text);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "weights";
  std::string model_ = FileContent(ArchivePath("nested.json"));
};

TEST_F(InitialWeightsTest, EveryFileOfKerasHasTheSame) {
  ExpectAll(ArchivePath("nested.keras"));
  // Keras 3.0.5, without names: of the job's own model.
  ExpectAll(ArchivePath("nested.weights.h5"));
  ExpectAll(ArchivePath("nested.h5"));
}

// Keras 2 puts ":0" behind names, leaves out a nested model's own name within it, and calls the
// kernel of a DepthwiseConv2D otherwise.
TEST_F(InitialWeightsTest, NamesOfKeras2AreUnderstood) {
  const Hdf5Layout layout = LayOutHdf5({{"model_weights/Conv1/Conv1/kernel:0", {2}},
                                        {"model_weights/dw/dw/depthwise_kernel:0", {3}},
                                        {"model_weights/tower/norm/gamma:0", {4}},
                                        {"optimizer_weights/Adam/iter:0", {}}});
  std::string text = layout.header;
  text.resize(layout.file_size);
  WriteAll(path_, text);
  const auto weights = FindInitialWeights(path_, model_,
                                          {{.name = "Conv1/kernel", .shape = {2}},
                                           {.name = "dw/kernel", .shape = {3}},
                                           {.name = "tower/norm/gamma", .shape = {4}}});
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_THAT(weights->missed, IsEmpty()) << weights->ToText();
  EXPECT_THAT(weights->unused, IsEmpty()) << weights->ToText();
}

TEST_F(InitialWeightsTest, PlacesCountLayersOfAClass) {
  const auto places = KerasWeightPlaces(model_);
  EXPECT_EQ(places.at("layers/dense"), "shared");
  EXPECT_EQ(places.at("layers/dense_1"), "answer");
  EXPECT_EQ(places.at("layers/sequential/layers/dense"), "tower/wide");
  EXPECT_EQ(places.at("layers/sequential/layers/batch_normalization"), "tower/norm");
  EXPECT_THAT(KerasWeightPlaces("no model"), IsEmpty());
  EXPECT_THAT(KerasWeightPlaces("{\"config\": {\"layers\": [1, {}, \"a\"]}}").size(), 1u);
}

TEST_F(InitialWeightsTest, VariablesNotLoadedAreNamedWithTheReason) {
  // Another model: a layer is wider, and another has another name.
  model_ = absl::StrReplaceAll(model_, {{"\"answer\"", "\"reply\""}});
  const size_t units = model_.find("\"units\": 2");
  ASSERT_NE(units, std::string::npos);
  model_.replace(units, 10, "\"units\": 5");
  EXPECT_EQ(Text(ArchivePath("nested.keras")),
            absl::StrCat(
                "initial weights: 2 of 10 variables are loaded from ", ArchivePath("nested.keras"),
                "\n"
                "  not loaded, but from their initializers:\n"
                "    tower/wide/kernel: has shape (3, 2) there, (3, 5) here\n"
                "    tower/wide/bias: has shape (2,) there, (5,) here\n"
                "    tower/norm/gamma: has shape (2,) there, (5,) here\n"
                "    tower/norm/beta: has shape (2,) there, (5,) here\n"
                "    tower/norm/moving_mean: has shape (2,) there, (5,) here\n"
                "    tower/norm/moving_variance: has shape (2,) there, (5,) here\n"
                "    reply/kernel: there is no layer \"reply\" with weights there\n"
                "    reply/bias: there is no layer \"reply\" with weights there\n"
                "  in the file and not used:\n"
                "    answer: layers/dense_1/vars/0 (2, 1)\n"
                "    answer: layers/dense_1/vars/1 (1,)\n"
                "    tower/norm: layers/sequential/layers/batch_normalization/vars/0 (2,)\n"
                "    tower/norm: layers/sequential/layers/batch_normalization/vars/1 (2,)\n"
                "    tower/norm: layers/sequential/layers/batch_normalization/vars/2 (2,)\n"
                "    tower/norm: layers/sequential/layers/batch_normalization/vars/3 (2,)\n"
                "    tower/wide: layers/sequential/layers/dense/vars/0 (3, 2)\n"
                "    tower/wide: layers/sequential/layers/dense/vars/1 (2,)\n"));
}

TEST_F(InitialWeightsTest, ALayerOfOtherVariablesIsNotTakenInPart) {
  const size_t bias = model_.find("\"use_bias\": true");
  ASSERT_NE(bias, std::string::npos);
  model_.replace(bias, 16, "\"use_bias\": false");
  EXPECT_THAT(Text(ArchivePath("nested.keras")),
              HasSubstr("shared/kernel: its layer has 2 variables there, 1 here"));
}

TEST_F(InitialWeightsTest, WeightsOfAnotherModelAreRejected) {
  model_ = absl::StrReplaceAll(
      model_, {{"\"answer\"", "\"a\""}, {"\"shared\"", "\"b\""}, {"\"tower\"", "\"c\""}});
  EXPECT_THAT(Text(ArchivePath("nested.keras")), HasSubstr("nested.keras: "));
}

TEST_F(InitialWeightsTest, TensorsOfSafetensorsAreKnownByName) {
  WriteSafetensors({{"answer/kernel", {2, 1}}, {"tower/norm/moving_mean", {2}}, {"lone", {}}}, 2.5);
  const std::string text = Text(path_);
  EXPECT_THAT(text, HasSubstr("2 of 10 variables are loaded"));
  EXPECT_THAT(text, HasSubstr("answer/bias: its layer has no \"bias\" there"));
  WriteSafetensors({{"answer/kernel", {2, 1}}}, NAN);
  const auto weights = FindInitialWeights(path_, model_, Variables());
  ASSERT_TRUE(weights.ok()) << weights.status();
  std::vector<float> values(2);
  EXPECT_THAT(ReadSavedValues(weights->saved, *weights->saved.layers.at("answer").data(), 0, values)
                  .message(),
              HasSubstr("weights: answer/kernel: value number 0 is nan, not a finite number"));
}

TEST_F(InitialWeightsTest, AModelOfAMillionLevelsIsRejected) {
  ASSERT_TRUE(WriteKerasArchive(
                  path_,
                  "{\"config\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}",
                  ArchivePath("nested.weights.h5"))
                  .ok());
  EXPECT_THAT(Text(path_), HasSubstr("weights: config.json"));
}

TEST_F(InitialWeightsTest, AFileWithoutWeightsIsRejected) {
  EXPECT_THAT(Text(path_), HasSubstr("No such file"));
  WriteAll(path_, "");
  EXPECT_THAT(Text(path_), HasSubstr(" .keras "));
  EXPECT_THAT(Text(directory_.path()), HasSubstr("RUN_DIR/checkpoints"));
  EXPECT_THAT(Text(ArchivePath("soft_link.h5")), HasSubstr("\"layers/dense/vars/0\""));
  // HDF5 of another kind.
  WriteAll(path_, FileContent(ArchivePath("../../../fuzz/corpus/hdf5/chunked")));
  EXPECT_THAT(Text(path_), HasSubstr(path_ + ": "));
}

}  // namespace
}  // namespace shoal
