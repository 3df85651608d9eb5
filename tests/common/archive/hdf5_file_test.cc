#include "common/archive/hdf5_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/common/archive/archive_files.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Hdf5FileTest : public testing::Test {
 protected:
  // The message for these bytes, which must be rejected, by the name of the file.
  std::string Rejected(const std::string& bytes) {
    WriteAll(path_, bytes);
    const auto file = OpenHdf5(path_);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss) << file.status();
    EXPECT_THAT(file.status().message(), HasSubstr(path_));
    return std::string(file.status().message());
  }
  // The same with a field of `bytes` changed.
  template <typename T>
  std::string RejectedWith(std::string bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    return Rejected(bytes);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.h5";
  const std::string whole_ = FileContent(ArchivePath("nested.weights.h5"));
};

TEST_F(Hdf5FileTest, ReadsWhatKerasWrote) {
  const auto file = OpenHdf5(ArchivePath("nested.weights.h5"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(
      DatasetLines(**file),
      ElementsAre("layers/dense/vars/0 (2, 3): 0 0.25 0.5 0.75 1 1.25",
                  "layers/dense/vars/1 (3,): 1.5 1.75 2", "layers/dense_1/vars/0 (2, 1): 6.25 6.5",
                  "layers/dense_1/vars/1 (1,): 6.75",
                  "layers/sequential/layers/batch_normalization/vars/0 (2,): 4.25 4.5",
                  "layers/sequential/layers/batch_normalization/vars/1 (2,): 4.75 5",
                  "layers/sequential/layers/batch_normalization/vars/2 (2,): 5.25 5.5",
                  "layers/sequential/layers/batch_normalization/vars/3 (2,): 5.75 6",
                  "layers/sequential/layers/dense/vars/0 (3, 2): 2.25 2.5 2.75 3 3.25 3.5",
                  "layers/sequential/layers/dense/vars/1 (2,): 3.75 4"));
  EXPECT_TRUE((*file)->names().empty());
}

TEST_F(Hdf5FileTest, ReadsTheOldFormatOfKeras) {
  const auto file = OpenHdf5(ArchivePath("nested.h5"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(DatasetLines(**file),
              Contains("model_weights/tower/tower/norm/gamma (2,): 4.25 4.5"));
}

TEST_F(Hdf5FileTest, ReadsNumbersOfSeveralTypesAsFloats) {
  const auto file = OpenHdf5(ArchivePath("types.h5"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->datasets().size(), 9u);
  for (const Hdf5File::Dataset& dataset : (*file)->datasets()) {
    std::vector<float> values(4);
    const absl::Status read = (*file)->ReadFloats(dataset, 0, values);
    if (dataset.path == "a/>f4" || dataset.path == "a/i2") {
      EXPECT_EQ(read.code(), absl::StatusCode::kUnimplemented) << dataset.path;
      EXPECT_THAT(read.message(), HasSubstr(dataset.path));
    } else if (dataset.path[2] == 'f') {
      EXPECT_THAT(values, ElementsAre(0, 1.5, 5, 1.0f / 32768)) << dataset.path;
    } else {
      EXPECT_THAT(values, ElementsAre(0, 1, 5, 7)) << dataset.path;
    }
  }
}

TEST_F(Hdf5FileTest, ATruncatedFileIsRejected) {
  Rejected("");
  EXPECT_THAT(Rejected(whole_.substr(0, 40)), HasSubstr("at byte 40"));
  EXPECT_THAT(Rejected(whole_.substr(0, whole_.size() - 1)),
              HasSubstr(absl::StrCat(whole_.size() - 1, " bytes")));
  // One that does not say that it is shorter now.
  for (size_t size = 100; size < whole_.size() - 8; size += 97) {
    std::string cut = whole_.substr(0, size);
    const uint64_t end = size;
    std::memcpy(cut.data() + 40, &end, sizeof(end));
    EXPECT_THAT(Rejected(cut), HasSubstr("at byte "));
  }
}

TEST_F(Hdf5FileTest, AnyChangedByteIsReadOrRejectedByName) {
  size_t rejected = 0;
  for (size_t at = 0; at < whole_.size(); at += 3) {
    for (const uint8_t flip : {0x01, 0x80, 0xFF}) {
      std::string changed = whole_;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      ByteSource source{.name = "changed.h5", .size = changed.size()};
      source.read = [&changed](uint64_t offset, void* out, uint64_t size) {
        EXPECT_LE(offset + size, changed.size());
        std::memcpy(out, changed.data() + offset, size);
        return absl::OkStatus();
      };
      const auto file = Hdf5File::Open(source);
      if (file.ok()) {
        for (const Hdf5File::Dataset& dataset : (*file)->datasets()) {
          std::vector<float> value(std::min<int64_t>(ElementCount(dataset.shape), 1));
          EXPECT_EQ((*file)->ReadFloats(dataset, 0, value).ok(), dataset.problem.empty());
        }
        continue;
      }
      ++rejected;
      EXPECT_THAT(file.status().message(), HasSubstr("changed.h5: "));
    }
  }
  EXPECT_GT(rejected, 1000u);
}

TEST_F(Hdf5FileTest, ASizeThatIsALieIsRejected) {
  // The layout of 24 bytes of values, which stands in one place.
  const std::string layout("\x03\x01", 2);
  size_t at = 0;
  for (uint64_t size = 0; size != 24; std::memcpy(&size, whole_.data() + at + 10, 8)) {
    at = whole_.find(layout, at + 1);
    ASSERT_NE(at, std::string::npos);
  }
  EXPECT_THAT(RejectedWith<uint64_t>(whole_, at + 10, 28), HasSubstr("28 bytes"));
  EXPECT_THAT(RejectedWith<uint64_t>(whole_, at + 2, whole_.size() - 8),
              HasSubstr(absl::StrCat("bytes ", whole_.size() - 8)));
  RejectedWith<uint64_t>(whole_, at + 2, ~uint64_t{0});
}

TEST_F(Hdf5FileTest, AGroupInItselfIsRejected) {
  uint64_t root = 0;
  std::memcpy(&root, whole_.data() + 64, 8);
  const size_t symbols = whole_.find("SNOD");
  EXPECT_THAT(RejectedWith<uint64_t>(whole_, symbols + 8 + 8, root),
              HasSubstr(absl::StrCat("at byte ", root)));
}

TEST_F(Hdf5FileTest, DataInAnotherFileIsRejected) {
  const auto rejected = [](const std::string& name) {
    const auto file = OpenHdf5(ArchivePath(name));
    EXPECT_FALSE(file.ok()) << name;
    EXPECT_THAT(file.status().message(), HasSubstr(name));
    return std::string(file.status().message());
  };
  EXPECT_THAT(rejected("soft_link.h5"), HasSubstr("\"layers/dense/vars/0\""));
  rejected("external_link.h5");
  EXPECT_THAT(rejected("external_data.h5"), HasSubstr("\"layers/dense/vars/0\""));
  EXPECT_THAT(rejected("latest.h5"), HasSubstr("libver=\"latest\""));
}

TEST_F(Hdf5FileTest, ValuesInPiecesAreNamedWhenTheyAreRead) {
  const auto file = OpenHdf5(ArchivePath("chunked.h5"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->datasets().size(), 1u);
  std::vector<float> values(8);
  const absl::Status read = (*file)->ReadFloats((*file)->datasets()[0], 0, values);
  EXPECT_EQ(read.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(read.message(), HasSubstr("chunked.h5: \"layers/dense/vars/0\""));
}

}  // namespace
}  // namespace shoal
