#include "worker/input/dataset/dataset.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/common/base/fails_with.h"
#include "tests/worker/input/formats/data_file_content.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sets an environment variable for a scope.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedEnvironment() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* const name_;
  std::optional<std::string> old_;
};

class DatasetTest : public DataFileTest {
 protected:
  // 3 images of 2x2 and their labels.
  static std::string Images() {
    return IdxHeader(0x08, {3, 2, 2}) +
           Stored<uint8_t>({0, 1, 2, 3, 10, 11, 12, 13, 252, 253, 254, 255}, true);
  }
  static std::string Labels() { return IdxHeader(0x08, {3}) + Stored<uint8_t>({7, 8, 9}, true); }

  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& images,
                                                const std::string& labels,
                                                const Shape& model_input = {2, 2, 1}) {
    return OpenDataset({.images = Write("images", images), .labels = Write("labels", labels)},
                       {{.name = "x", .shape = model_input}});
  }
  absl::Status ErrorOf(const std::string& images, const std::string& labels = Labels(),
                       const Shape& model_input = {2, 2, 1}) {
    return Open(images, labels, model_input).status();
  }
  // "example | label".
  static std::string Row(const Dataset& dataset, uint64_t index) {
    std::vector<float> example(ElementCount(dataset.features()[0].shape));
    std::vector<float> label(ElementCount(dataset.label_shape()));
    const absl::Status status = dataset.Read(index, std::vector<FeatureSpan>{example}, label);
    if (!status.ok()) return status.ToString();
    return testing::PrintToString(example) + " | " + testing::PrintToString(label);
  }
};

TEST_F(DatasetTest, ReadsIdx) {
  const auto dataset = Open(Images(), Labels());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 3u);
  EXPECT_EQ((*dataset)->features()[0].shape, (Shape{2, 2, 1}));
  EXPECT_TRUE((*dataset)->features()[0].bytes);
  EXPECT_EQ((*dataset)->label_shape(), Shape{});
  EXPECT_EQ(Row(**dataset, 0), "{ 0, 1, 2, 3 } | { 7 }");
  EXPECT_EQ(Row(**dataset, 2), "{ 252, 253, 254, 255 } | { 9 }");
  EXPECT_THAT(Row(**dataset, 3), AllOf(HasSubstr("OUT_OF_RANGE"), HasSubstr("row 3")));
}

TEST_F(DatasetTest, ReadsGzipWhateverItsName) {
  const auto dataset = Open(Gzip(Images()), Gzip(Labels()));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(Row(**dataset, 1), "{ 10, 11, 12, 13 } | { 8 }");
}

TEST_F(DatasetTest, ReadsNpyBesideIdx) {
  const std::string images =
      NpyHeader(1, NpyDict("<f4", "(3, 2)")) + Stored<float>({0.5, 1, 2, 3, 4, 5}, false);
  const auto dataset = Open(images, Labels(), {2});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->features()[0].shape, (Shape{2}));
  EXPECT_FALSE((*dataset)->features()[0].bytes);
  EXPECT_EQ(Row(**dataset, 0), "{ 0.5, 1 } | { 7 }");
}

TEST_F(DatasetTest, ReadsGzippedNpyAndLabelsWithAxes) {
  const std::string labels =
      NpyHeader(3, NpyDict("<i8", "(3, 2)")) + Stored<int64_t>({0, 1, 16777216, 0, -1, 5}, false);
  const auto dataset = Open(Images(), Gzip(labels), {2, 2});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->label_shape(), (Shape{2}));
  EXPECT_EQ(Row(**dataset, 1), "{ 10, 11, 12, 13 } | { 1.67772e+07, 0 }");
}

TEST_F(DatasetTest, ContentLargerThanEveryBuffer) {
  std::vector<double> numbers;
  for (int i = 0; i < 3 * 200000; ++i) numbers.push_back(i);
  const std::string images =
      NpyHeader(1, NpyDict("<f8", "(3, 200000)")) + Stored<double>(numbers, false);
  for (const std::string& content : {images, Gzip(images)}) {
    const auto dataset = Open(content, Labels(), {200000});
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    std::vector<float> example(200000);
    float label;
    ASSERT_TRUE((*dataset)->Read(2, std::vector<FeatureSpan>{example}, std::span(&label, 1)).ok());
    for (int i = 0; i < 200000; ++i) ASSERT_EQ(example[i], 400000 + i);
  }
}

TEST_F(DatasetTest, ShapesThatDifferAreBothNamed) {
  EXPECT_TRUE(Open(Images(), Labels(), {2, 2}).ok());
  const absl::Status flat = ErrorOf(Images(), Labels(), {4});
  EXPECT_THAT(flat, FailsWith(absl::StatusCode::kInvalidArgument,
                              {Path("images"), "(None, 2, 2)", "(None, 4)", "Flatten"}));
  EXPECT_THAT(ErrorOf(Images(), Labels(), {1, 2, 2}),
              FailsWith(absl::StatusCode::kInvalidArgument, {"Reshape"}));
  EXPECT_THAT(std::string(ErrorOf(Images(), Labels(), {2, 2, 3}).message()),
              AllOf(HasSubstr("(None, 2, 2, 3)"), testing::Not(HasSubstr("layer"))));
  EXPECT_FALSE(ErrorOf(Images(), Labels(), {0}).ok());
}

TEST_F(DatasetTest, CountsThatDifferAreBothNamed) {
  const absl::Status status = ErrorOf(Images(), IdxHeader(0x08, {2}) + "ab");
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                {Path("images"), "3 examples", Path("labels"), "2 labels"}));
}

TEST_F(DatasetTest, APathThatIsNoFileIsNamed) {
  Write("labels", Labels());
  const auto error = [&](const std::string& name) {
    return OpenDataset({.images = Path(name), .labels = Path("labels")}, {{.shape = {2, 2}}})
        .status();
  };
  EXPECT_THAT(error("missing"), FailsWith(absl::StatusCode::kNotFound, {Path("missing")}));
  std::filesystem::create_directory(Path("folder"));
  EXPECT_THAT(error("folder"), FailsWith(absl::StatusCode::kInvalidArgument, {Path("folder")}));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error("pipe"), FailsWith(absl::StatusCode::kInvalidArgument, {Path("pipe")}));
}

TEST_F(DatasetTest, BothFilesAreNamedWhenBothAreWrong) {
  const auto error = [&] {
    return OpenDataset({.images = Path("images"), .labels = Path("labels")}, {{.shape = {2, 2}}})
        .status();
  };
  EXPECT_EQ(error().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(error().message()),
              AllOf(HasSubstr(Path("images") + ": "), HasSubstr("\n" + Path("labels") + ": ")));
  // A file that is no data is wrong wherever the other one is.
  Write("labels", "junk");
  EXPECT_EQ(error().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(error().message()),
              AllOf(HasSubstr(Path("images") + ": "), HasSubstr("\n" + Path("labels") + ": ")));
}

TEST_F(DatasetTest, TruncatedOrTooLongIsNamedWithTheOffset) {
  const std::string images = Images();
  for (const std::string& content : {images.substr(0, 20), Gzip(images.substr(0, 20))}) {
    const absl::Status status = ErrorOf(content);
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kDataLoss, {Path("images"), "byte 20", "28"}));
  }
  EXPECT_THAT(ErrorOf(images + "x"), FailsWith(absl::StatusCode::kDataLoss, {"byte 29", "28"}));
  EXPECT_THAT(ErrorOf(Gzip(images + "x")), FailsWith(absl::StatusCode::kDataLoss, {"byte 28"}));
  EXPECT_THAT(ErrorOf(images.substr(0, 7)),
              FailsWith(absl::StatusCode::kDataLoss, {Path("images"), "byte 7"}));
}

TEST_F(DatasetTest, DamagedGzipIsNamedWithTheOffset) {
  const std::string gzip = Gzip(Images());
  const absl::Status early = ErrorOf(gzip.substr(0, gzip.size() - 9));
  EXPECT_THAT(early, FailsWith(absl::StatusCode::kDataLoss,
                               {Path("images"), "byte " + std::to_string(gzip.size() - 9)}));
  std::string damaged = gzip;
  damaged[damaged.size() - 6] ^= 1;  // in the checksum
  EXPECT_THAT(ErrorOf(damaged), FailsWith(absl::StatusCode::kDataLoss, {Path("images"), "byte"}));
  damaged = gzip;
  damaged[10] = '\xff';  // an invalid block type
  EXPECT_THAT(ErrorOf(damaged), FailsWith(absl::StatusCode::kDataLoss, {Path("images"), "byte"}));
}

TEST_F(DatasetTest, GzipNeedsATemporaryFileButPlainFilesDoNot) {
  const ScopedEnvironment environment("TMPDIR", Path("missing"));
  const auto plain = Open(Images(), Labels());
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(Row(**plain, 2), "{ 252, 253, 254, 255 } | { 9 }");
  EXPECT_THAT(std::string(ErrorOf(Gzip(Images())).message()),
              AllOf(HasSubstr(Path("images")), HasSubstr(Path("missing")), HasSubstr("TMPDIR")));
}

TEST_F(DatasetTest, LeavesNoTemporaryFile) {
  std::filesystem::create_directory(Path("tmp"));
  const ScopedEnvironment environment("TMPDIR", Path("tmp"));
  const auto dataset = Open(Gzip(Images()), Labels());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_TRUE(std::filesystem::is_empty(Path("tmp")));
}

// Large plain files are read without a copy; one that is shortened meanwhile is an error, not a
// SIGBUS.
TEST_F(DatasetTest, LargeFileShortenedWhileItIsReadIsAnError) {
  constexpr uint64_t kRows = 1100;
  constexpr uint64_t kRowBytes = 64 << 10;
  const std::string header = IdxHeader(0x08, {kRows, kRowBytes});
  const std::string path = Write("images", header);
  std::filesystem::resize_file(path, header.size() + kRows * kRowBytes);  // sparse
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(header.size() + 1000 * kRowBytes - 1);
    file << "\x01\x02\x03";
    file.seekp(header.size() + 1001 * kRowBytes - 1);
    file << "\x04";
  }
  Write("labels", IdxHeader(0x08, {kRows}) + std::string(kRows, 'x'));
  const auto dataset =
      OpenDataset({.images = path, .labels = Path("labels")}, {{.shape = {kRowBytes}}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::vector<float> example(kRowBytes);
  float label;
  ASSERT_TRUE((*dataset)->Read(1000, std::vector<FeatureSpan>{example}, std::span(&label, 1)).ok());
  EXPECT_EQ(example[0], 2);
  EXPECT_EQ(example[1], 3);
  EXPECT_EQ(example[2], 0);
  EXPECT_EQ(example[kRowBytes - 1], 4);
  std::vector<uint8_t> bytes(kRowBytes);
  ASSERT_TRUE((*dataset)->Read(1000, std::vector<FeatureSpan>{bytes}, std::span(&label, 1)).ok());
  EXPECT_EQ(std::vector<float>(bytes.begin(), bytes.end()), example);

  std::filesystem::resize_file(path, header.size() + 1000 * kRowBytes + 100);
  const absl::Status status =
      (*dataset)->Read(1000, std::vector<FeatureSpan>{example}, std::span(&label, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path),
                    HasSubstr("byte " + std::to_string(header.size() + 1000 * kRowBytes + 100))));
  EXPECT_TRUE((*dataset)->Read(999, std::vector<FeatureSpan>{example}, std::span(&label, 1)).ok());
}

TEST_F(DatasetTest, BytesAreReadAsSuchToo) {
  const auto dataset = Open(Images(), Labels());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_TRUE((*dataset)->features()[0].bytes);
  std::vector<uint8_t> example(4);
  float label = 0;
  ASSERT_TRUE((*dataset)->Read(1, std::vector<FeatureSpan>{example}, std::span(&label, 1)).ok());
  EXPECT_EQ(example, (std::vector<uint8_t>{10, 11, 12, 13}));
  EXPECT_EQ(label, 8);
}

TEST_F(DatasetTest, SmallFileShortenedWhileItIsReadStaysWhole) {
  const auto dataset = Open(Images(), Labels());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::filesystem::resize_file(Path("images"), 0);
  EXPECT_EQ(Row(**dataset, 1), "{ 10, 11, 12, 13 } | { 8 }");
}

TEST(FashionMnistTest, OpensTheRealFiles) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "skipped: " << folder << " is missing (package dataset-fashion-mnist)";
  }
  const struct {
    const char* prefix;
    uint64_t size;
  } sets[] = {{"train", 60000}, {"t10k", 10000}};
  for (const auto& set : sets) {
    const auto dataset = OpenDataset({.images = folder + set.prefix + "-images-idx3-ubyte.gz",
                                      .labels = folder + set.prefix + "-labels-idx1-ubyte.gz"},
                                     {{.shape = {28, 28, 1}}});
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    ASSERT_EQ((*dataset)->size(), set.size);
    EXPECT_EQ((*dataset)->features()[0].shape, (Shape{28, 28, 1}));
    // Every class is there equally often.
    std::vector<uint64_t> classes(10);
    std::vector<float> example(28 * 28);
    for (uint64_t i = 0; i < set.size; ++i) {
      float label;
      ASSERT_TRUE(
          (*dataset)->Read(i, std::vector<FeatureSpan>{example}, std::span(&label, 1)).ok());
      ++classes.at(static_cast<size_t>(label));
    }
    EXPECT_EQ(classes, std::vector<uint64_t>(10, set.size / 10));
  }
}

}  // namespace
}  // namespace shoal
