#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "common/log/logging.h"
#include "tests/common/base/fails_with.h"
#include "tests/worker/input/formats/format_test.h"
#include "tests/worker/input/formats/record_content.h"
#include "tests/worker/input/pictures/picture_files.h"
#include "worker/input/formats/tfrecord/record_file.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TfRecordTest : public FormatTest {
 protected:
  TfRecordTest() {
    source_.format = "tfrecord";
    source_.paths = {Path("data.tfrecord")};
    source_.features = {{"", {"x"}}};
    source_.labels = "y";
    inputs_ = {{.name = "in", .shape = {2}}};
  }
  static std::string Numbers(float first, float second, uint64_t label) {
    return ExampleOf({{"x", FloatFeature({first, second})}, {"y", IntegerFeature(label)}});
  }
  static std::string Bytes(const std::string& x, uint64_t label) {
    return ExampleOf({{"x", BytesFeature(x)}, {"y", IntegerFeature(label)}});
  }
};

// As tf.io.TFRecordWriter and tf.train.Example write it: {"x": FloatList([1]), "y":
// Int64List([2])}.
TEST_F(TfRecordTest, KnowsTensorFlowsBytes) {
  EXPECT_EQ(TfRecordOf("abc").substr(8, 4), LittleEndian(MaskedCrc(LittleEndian(3, 8)), 4));
  const std::string example =
      std::string("\x0a\x1b\x0a\x0d\x0a\x01x\x12\x08\x12\x06\x0a\x04\x00\x00\x80\x3f", 17) +
      std::string("\x0a\x0a\x0a\x01y\x12\x05\x1a\x03\x0a\x01\x02", 12);
  Write("data.tfrecord", TfRecordOf(example));
  inputs_[0].shape = {1};
  EXPECT_THAT(Rows(), ElementsAre("1 : 2"));
}

// By which it is decided how many labels are looked at before a training.
TEST_F(TfRecordTest, SaysWhatIsReadForALabel) {
  Write("data.tfrecord",
        TfRecordOf(Numbers(1, 2, 7)) + TfRecordOf(Bytes(std::string(1000, 'x'), 8)));
  const uint64_t bytes = std::filesystem::file_size(Path("data.tfrecord"));
  EXPECT_EQ((*Open())->bytes_for_label(), bytes / 2);
}

TEST_F(TfRecordTest, ReadsNumbersBytesAndPictures) {
  Write("1.tfrecord", TfRecordOf(Numbers(1, 2.5, 7)) + TfRecordOf(Numbers(3, 4, 8)));
  Write("2.tfrecord", TfRecordOf(Bytes("\x05\xff", 9)));
  source_.paths = {Path("?.tfrecord")};
  EXPECT_THAT(Rows(), ElementsAre("1 2.5 : 7", "3 4 : 8", "5 255 : 9"));
  Write("data.tfrecord", TfRecordOf(Bytes(PlainJpeg(9, 9, 40), 1)) +
                             TfRecordOf(Bytes(EncodePng({10, 10, 10, 10}, 2, 2, 1), 2)));
  source_.paths = {Path("data.tfrecord")};
  inputs_[0].shape = {1, 2, 1};
  EXPECT_THAT(Rows(), ElementsAre("40 40 : 1", "10 10 : 2"));
  inputs_[0].shape = {2};
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss, {"\"x\"", "2 numbers"}));
}

TEST_F(TfRecordTest, AKeyMaySayWhatARecordCounts) {
  Write("data.tfrecord", TfRecordOf(Numbers(1, 2, 3)) + TfRecordOf(Numbers(4, 5, 6)));
  source_.weights = "y";
  inputs_.push_back({.name = "sample weights", .type = FeatureType::kWeight});
  EXPECT_THAT(Rows(), ElementsAre("1 2 | 3 : 3", "4 5 | 6 : 6"));
  source_.weights = "w";
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss, {"\"w\""}));
}

TEST_F(TfRecordTest, ManySmallRecordsAreFound) {
  std::string content;
  for (int i = 0; i < 5000; ++i) content += TfRecordOf(Numbers(i, -i, i));
  // And one that is larger than what is read at once, with more after it.
  content += TfRecordOf(Bytes(std::string(200'000, 'x'), 1)) + TfRecordOf(Numbers(1, 2, 3));
  Write("data.tfrecord", content);
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ((*dataset)->size(), 5002u);
  std::vector<float> x(2), label(1);
  for (const uint64_t i : {0, 1, 1234, 4999}) {
    ASSERT_TRUE((*dataset)->Read(i, std::vector<FeatureSpan>{x}, label).ok());
    EXPECT_EQ(x[1], -static_cast<float>(i));
  }
  ASSERT_TRUE((*dataset)->ReadLabel(5001, label).ok());
  EXPECT_EQ(label[0], 3);
}

TEST_F(TfRecordTest, WrongChecksumsAreNamedWithTheirPlace) {
  const std::string first = TfRecordOf(Numbers(1, 2, 3)), second = TfRecordOf(Numbers(4, 5, 6));
  const std::string path = Path("data.tfrecord");
  const std::string place = std::to_string(first.size());
  std::string damaged = second;
  damaged[20] ^= 1;
  Write("data.tfrecord", first + damaged);
  const auto is_damaged = [](const std::vector<std::string>& values) {
    return FailsWith(absl::StatusCode::kDataLoss, values);
  };
  EXPECT_THAT(ErrorOf(), is_damaged({path + ": ", "byte " + place}));
  damaged = second;
  damaged[0] ^= 1;
  Write("data.tfrecord", first + damaged);
  EXPECT_THAT(ErrorOf(), is_damaged({path + ": at byte " + place}));
  Write("data.tfrecord", first + second.substr(0, second.size() - 1));
  EXPECT_THAT(ErrorOf(), is_damaged({path + ": ends at byte", "byte " + place}));
  Write("data.tfrecord", first + second.substr(0, 7));
  EXPECT_THAT(ErrorOf(), is_damaged({path + ": ends at byte", "byte " + place}));
  const std::string length = LittleEndian(uint64_t{1} << 60, 8);
  Write("data.tfrecord", first + length + LittleEndian(MaskedCrc(length), 4));
  EXPECT_THAT(ErrorOf(), is_damaged({std::to_string(uint64_t{1} << 60), place}));
  Write("data.tfrecord", Gzip(first));
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kUnimplemented, {path, "gzip"}));
  Write("data.tfrecord", "");
  EXPECT_THAT(ErrorOf(), is_damaged({path}));
}

TEST_F(TfRecordTest, RecordsThatDoNotSuitAreNamed) {
  const std::string place = Path("data.tfrecord") + ": the record at byte 0: ";
  const auto error = [&](const std::string& record) {
    Write("data.tfrecord", TfRecordOf(record));
    return ErrorOf();
  };
  const auto is_damaged = [&](const std::vector<std::string>& values) {
    return AllOf(FailsWith(absl::StatusCode::kDataLoss, {place}),
                 FailsWith(absl::StatusCode::kDataLoss, values));
  };
  EXPECT_THAT(error("junk"), is_damaged({"tf.train.Example"}));
  EXPECT_THAT(error(""), is_damaged({": none"}));
  EXPECT_THAT(error(Bytes("abc", 1)), is_damaged({"\"x\"", "3 bytes"}));
  source_.features = {{"", {"image"}}};
  EXPECT_THAT(error(Bytes("ab", 1)), is_damaged({"\"image\"", "x, y"}));
  source_.features = {{"", {"x"}}};
  inputs_[0].type = FeatureType::kInteger;
  EXPECT_THAT(error(Numbers(1, 2.5, 0)), is_damaged({"\"in\"", "2.5"}));
}

// That of "3" would be class 51.
TEST_F(TfRecordTest, BytesAreNoLabel) {
  for (const auto& [bytes, what] :
       {std::pair(std::string("3"), "bytes"), {PlainJpeg(9, 9, 40), "a JPEG"}}) {
    const std::string path =
        Write("data.tfrecord",
              TfRecordOf(ExampleOf({{"x", FloatFeature({1, 2})}, {"y", BytesFeature(bytes)}})));
    EXPECT_THAT(ErrorOf(),
                FailsWith(absl::StatusCode::kDataLoss, {path + ": ", "byte 0: \"y\"", what}));
  }
}

TEST_F(TfRecordTest, DamagedRecordsCanBeSkipped) {
  std::string damaged = TfRecordOf(Numbers(4, 5, 6));
  damaged[20] ^= 1;
  Write("data.tfrecord", TfRecordOf(Numbers(1, 2, 3)) + damaged + TfRecordOf(Numbers(7, 8, 9)));
  source_.damaged = "skip";
  int lines = 0;
  SendLogTo([&](const std::string& message, const LogFields&) {
    EXPECT_THAT(message, HasSubstr(Path("data.tfrecord")));
    ++lines;
  });
  EXPECT_THAT(Rows(), ElementsAre("1 2 : 3", "7 8 : 9", "7 8 : 9"));
  SendLogTo({});
  EXPECT_EQ(lines, 1);  // also where its label alone is asked for
}

// A field of bytes, as protobuf writes it.
std::string Field(int number, const std::string& content) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  size_t left = content.size();
  for (; left > 127; left >>= 7) text.push_back(static_cast<char>((left & 127) | 128));
  return text + static_cast<char>(left) + content;
}

// An example with one key, whose Feature is `feature`.
std::string ExampleOf(const std::string& key, const std::string& feature) {
  return Field(1, Field(1, Field(1, key) + Field(2, feature)));
}

TEST_F(TfRecordTest, ReadsWhatProtobufMayWriteOtherwise) {
  const std::string two("\x00\x00\x00\x40", 4), negative(std::string(9, '\xff') + '\x01');
  const std::string y = ExampleOf("y", Field(3, "\x08\x07"));
  const auto example_of = [&](const std::string& x) { return TfRecordOf(ExampleOf("x", x) + y); };
  // Not packed, the one list in two pieces, an unknown field, the last of two lists and of two
  // keys.
  Write("data.tfrecord",
        example_of(Field(2, "\x0d" + two + "\x0d" + two)) +
            example_of(Field(3, "\x08" + negative + "\x08\x05")) +
            example_of(Field(2, Field(1, two) + "\x50\x01" + Field(1, two))) +
            example_of(Field(2, Field(1, two)) + Field(3, Field(1, "\x03\x04"))) +
            TfRecordOf(ExampleOf("x", "") + y + ExampleOf("x", Field(3, Field(1, "\x01\x02")))));
  EXPECT_THAT(Rows(), ElementsAre("2 2 : 7", "-1 5 : 7", "2 2 : 7", "3 4 : 7", "1 2 : 7"));
  for (const std::string& damaged :
       {std::string("\x0a\x05"), ExampleOf("x", Field(2, Field(1, "abc"))),
        ExampleOf("x", Field(3, Field(1, "\xff"))), ExampleOf("x", "\x0b"), Field(1, "\x08")}) {
    Write("data.tfrecord", TfRecordOf(damaged));
    EXPECT_THAT(ErrorOf(),
                FailsWith(absl::StatusCode::kDataLoss, {"byte 0: ", "tf.train.Example"}));
  }
}

// Many small values, which a parsed message takes twenty times their bytes for.
TEST_F(TfRecordTest, ManySmallValuesTakeNoMemory) {
  constexpr size_t kValues = 16 << 20;
  std::string values(2 * kValues, '\0');
  for (size_t i = 0; i < kValues; ++i) values[2 * i] = '\x0a';
  Write("data.tfrecord", TfRecordOf(ExampleOf("x", Field(1, values))));
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss, {"\"x\"", "16777216"}));
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 400 << 10);  // a sanitizer's included
}

// Its key x has as many numbers as nobody wants, and its label could be read.
TEST_F(TfRecordTest, ASubstituteForADamagedExampleIsOfItsSubset) {
  SendLogTo([](const std::string&, const LogFields&) {});
  source_.test_split = 0.3;
  source_.subset = "test";
  const auto records = [](int damaged) {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      text += TfRecordOf(i == damaged ? Bytes("abc", i) : Numbers(float(i), 0, i));
    }
    return text;
  };
  Write("data.tfrecord", records(-1));
  const std::vector<std::string> whole = Rows();
  ASSERT_EQ(whole.size(), 9u);
  source_.damaged = "skip";
  for (size_t i = 0; i < whole.size(); ++i) {
    Write("data.tfrecord", records(std::stoi(whole[i])));
    std::vector<std::string> expected = whole;
    expected[i] = whole[(i + 1) % whole.size()];
    EXPECT_EQ(Rows(), expected);
  }
  SendLogTo({});
}

// 20 GB, nearly all of them holes: of the file only what is asked for is read.
TEST_F(TfRecordTest, AFileLargerThanMemoryIsReadWithinLittleOfIt) {
  constexpr uint64_t kRecords = 200;
  constexpr uint64_t kRecordBytes = 100 << 20;
  const std::string path = Write("data.tfrecord", "");
  const std::string length = LittleEndian(kRecordBytes, 8);
  const std::string head = length + LittleEndian(MaskedCrc(length), 4);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (uint64_t i = 0; i < kRecords; ++i) {
      file.seekp(static_cast<std::streamoff>(i * (kRecordBytes + 16)));
      file << head;
    }
    file.seekp(static_cast<std::streamoff>(kRecords * (kRecordBytes + 16)));
    file << TfRecordOf(Numbers(1, 2, 3));
    ASSERT_TRUE(file.good());
  }
  ASSERT_GT(std::filesystem::file_size(path), 20'000'000'000u);
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), kRecords + 1);
  std::vector<float> x(2), label(1);
  ASSERT_TRUE((*dataset)->Read(kRecords, std::vector<FeatureSpan>{x}, label).ok());
  EXPECT_EQ(label[0], 3);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 16 << 10);
}

}  // namespace
}  // namespace shoal
