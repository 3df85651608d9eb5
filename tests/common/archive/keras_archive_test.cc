#include "common/archive/keras_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <map>

#include "tests/common/archive/archive_files.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

class KerasArchiveTest : public testing::Test {
 protected:
  void Zip(const std::map<std::string, std::string>& members, zip_int32_t method) {
    std::filesystem::remove(path_);
    int code = 0;
    zip* archive = zip_open(path_.c_str(), ZIP_CREATE, &code);
    for (const auto& [name, content] : members) {
      const zip_int64_t index = zip_file_add(
          archive, name.c_str(), zip_source_buffer(archive, content.data(), content.size(), 0), 0);
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), method, 0);
    }
    ASSERT_EQ(zip_close(archive), 0);
  }
  std::string ModelError() const {
    return std::string(ReadArchivedModel(path_).status().message());
  }
  std::string WeightsError() const {
    return std::string(OpenArchivedWeights(path_).status().message());
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a.keras";
};

TEST_F(KerasArchiveTest, ReadsWhatKerasWrote) {
  const std::string path = ArchivePath("nested.keras");
  EXPECT_TRUE(IsZipArchive(path));
  EXPECT_FALSE(IsZipArchive(ArchivePath("nested.h5")));
  const auto model = ReadArchivedModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(*model, AllOf(testing::StartsWith("{"), HasSubstr("\"class_name\": \"Functional\"")));
  const auto weights = OpenArchivedWeights(path);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto file = Hdf5File::Open(*weights);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(DatasetLines(**file), Contains("layers/dense_1/vars/0 (2, 1): 6.25 6.5"));
  EXPECT_THAT((*file)->names(), AllOf(Contains(Pair("layers/dense_1/vars", "answer")),
                                      Contains(Pair("layers/sequential/vars", "tower"))));
}

TEST_F(KerasArchiveTest, AFileThatIsNoArchiveIsRejected) {
  WriteAll(path_, "PK\x03\x04 and no more");
  EXPECT_THAT(ModelError(), HasSubstr(path_));
  Zip({{"metadata.json", "{}"}}, ZIP_CM_STORE);
  EXPECT_THAT(ModelError(), AllOf(HasSubstr(" config.json"), HasSubstr(" metadata.json")));
  EXPECT_THAT(WeightsError(), HasSubstr(" model.weights.h5"));
  std::filesystem::remove(path_);
  EXPECT_TRUE(absl::IsNotFound(ReadArchivedModel(path_).status()));
}

TEST_F(KerasArchiveTest, AnArchiveThatIsCutOffIsRejected) {
  const std::string whole = FileContent(ArchivePath("nested.keras"));
  for (size_t size = 0; size < whole.size(); size += 331) {
    WriteAll(path_, whole.substr(0, size));
    EXPECT_THAT(WeightsError(), HasSubstr(path_)) << size;
  }
}

// Found by the fuzz target: libzip crashed.
TEST_F(KerasArchiveTest, WeightsWithoutAByteAreRejected) {
  Zip({{"model.weights.h5", ""}}, ZIP_CM_STORE);
  const auto weights = OpenArchivedWeights(path_);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(Hdf5File::Open(*weights).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(KerasArchiveTest, ADamagedValueIsFoundByTheChecksum) {
  std::string bytes = FileContent(ArchivePath("nested.keras"));
  const float value = 6.75f;  // the bias of the last layer
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&value), 4));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  WriteAll(path_, bytes);
  EXPECT_THAT(WeightsError(), HasSubstr("a.keras: model.weights.h5: "));
}

TEST_F(KerasArchiveTest, AMemberOutsideIsRejected) {
  for (const std::string name : {"../evil", "assets/../../evil", "/etc/evil", "a\\..\\evil"}) {
    Zip({{"config.json", "{}"}, {"model.weights.h5", ""}, {name, "x"}}, ZIP_CM_STORE);
    EXPECT_EQ(ReadArchivedModel(path_).status().code(), absl::StatusCode::kDataLoss) << name;
    EXPECT_EQ(OpenArchivedWeights(path_).status().code(), absl::StatusCode::kDataLoss) << name;
    EXPECT_THAT(ModelError(), HasSubstr("evil"));
  }
}

TEST_F(KerasArchiveTest, TooManyMembersAreRejected) {
  std::map<std::string, std::string> members;
  for (int i = 0; i < 1001; ++i) members[std::to_string(i)] = "";
  Zip(members, ZIP_CM_STORE);
  EXPECT_THAT(ModelError(), HasSubstr("1000 members"));
}

TEST_F(KerasArchiveTest, EmptyWeightsAreRejected) {
  Zip({{"config.json", "{}"}, {"model.weights.h5", ""}}, ZIP_CM_STORE);
  const auto weights = OpenArchivedWeights(path_);
  ASSERT_TRUE(weights.ok()) << weights.status();
  char byte;
  EXPECT_EQ(weights->read(0, &byte, 1).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Hdf5File::Open(*weights).status().message(),
              HasSubstr("a.keras: model.weights.h5: "));
}

TEST_F(KerasArchiveTest, WeightsOfAnotherSizeThanTheyTakeAreRejected) {
  const absl::Status status =
      OpenArchivedWeights(SHOAL_SOURCE_DIR "/tests/fuzz/corpus/keras_archive/lying_size").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(status.message(), HasSubstr("lying_size: model.weights.h5: "));
}

TEST_F(KerasArchiveTest, ABombIsRejected) {
  // 80 MB in 80 KB.
  Zip({{"config.json", std::string(80 << 20, ' ')}}, ZIP_CM_DEFLATE);
  EXPECT_LT(std::filesystem::file_size(path_), 200'000u);
  EXPECT_THAT(ModelError(), AllOf(HasSubstr("a.keras: config.json: "), HasSubstr(" 67108864 ")));
  Zip({{"model.weights.h5", std::string(1 << 20, ' ')}}, ZIP_CM_DEFLATE);
  EXPECT_THAT(WeightsError(), HasSubstr("a.keras: model.weights.h5: is compressed"));
}

TEST_F(KerasArchiveTest, WritesWhatItReads) {
  const std::string weights = FileContent(ArchivePath("nested.weights.h5"));
  ASSERT_TRUE(WriteKerasArchive(path_, "{\"a\": 1}", ArchivePath("nested.weights.h5")).ok());
  EXPECT_EQ(ReadArchivedModel(path_).value(), "{\"a\": 1}");
  const auto source = OpenArchivedWeights(path_);
  ASSERT_TRUE(source.ok()) << source.status();
  std::string read(source->size, '\0');
  ASSERT_TRUE(source->read(0, read.data(), read.size()).ok());
  EXPECT_EQ(read, weights);
  EXPECT_FALSE(WriteKerasArchive(path_, "{}", ArchivePath("nested.weights.h5")).ok());
}

}  // namespace
}  // namespace shoal
