#include "cli/trained_model/data_source_guess.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/worker/input/formats/data_file_content.h"

namespace shoal {
namespace {

using DataSourceGuessTest = DataFileTest;

TEST_F(DataSourceGuessTest, FormatsAreToldByTheirNames) {
  for (const auto& [name, format] :
       std::map<std::string, std::string>{{"x.npz", "npz"},
                                          {"x.CSV", "csv"},
                                          {"x.csv.gz", "csv"},
                                          {"x.idx.gz", "arrays"},
                                          {"train.bin", "cifar100"},
                                          {"data_batch_1.bin", "cifar10"},
                                          {"train-00000-of-00010.tfrecord", "tfrecord"},
                                          {"train.tfrecords", "tfrecord"}}) {
    EXPECT_EQ(GuessDataSource(Path(name))->format, format) << name;
  }
}

TEST_F(DataSourceGuessTest, AnArrayIsToldByItsContent) {
  const std::string path = Write("t10k-images-idx3-ubyte", IdxHeader(0x08, {1}) + "a");
  const absl::StatusOr<DataSource> guessed = GuessDataSource(path);
  ASSERT_TRUE(guessed.ok()) << guessed.status();
  EXPECT_EQ(guessed->format, "arrays");
  EXPECT_EQ(GuessDataSource(Write("notes.txt", "GIF89a of a cat")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shoal
