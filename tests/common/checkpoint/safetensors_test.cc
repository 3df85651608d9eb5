#include "common/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/safetensors_header.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A file of this header text and so many zero bytes of data.
std::string FileText(const std::string& json, size_t data_size) {
  const uint64_t length = json.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + json + std::string(data_size, '\0');
}

class SafetensorsTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SafetensorsFile>> OpenText(const std::string& text) {
    WriteAll(path_, text);
    return SafetensorsFile::Open(path_);
  }
  // The message for a header that must be rejected; it names the file.
  std::string Rejected(const std::string& json, size_t data_size) {
    const auto file = OpenText(FileText(json, data_size));
    EXPECT_FALSE(file.ok()) << json;
    if (file.ok()) return "";
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << file.status();
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(path_));
    return std::string(file.status().message());
  }
  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/a.safetensors";
};

TEST_F(SafetensorsTest, LayoutIsWhatTheReaderReads) {
  const SafetensorsLayout layout =
      LayOutSafetensors({{"z", {2, 3}}, {"a/ü \"q\"", {}}, {"empty", {0, 7}}, {"b", {4}}},
                        {{"job", "fashion"}, {"steps", "12"}});
  EXPECT_EQ(layout.header.size() % 8, 0u);
  EXPECT_THAT(layout.header, HasSubstr(R"("__metadata__":{"job":"fashion","steps":"12"})"));
  EXPECT_EQ(layout.file_size, layout.header.size() + 4 * (6 + 1 + 0 + 4));
  std::string text = layout.header;
  for (int i = 0; i < 11; ++i) {
    const float value = 1.5f * i;
    text.append(reinterpret_cast<const char*>(&value), 4);
  }
  const auto file = OpenText(text);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->tensors().size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const TensorEntry* entry = (*file)->Find(layout.tensors[i].name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->begin, layout.tensors[i].begin);
    EXPECT_EQ(entry->size, layout.tensors[i].size);
    EXPECT_EQ(entry->shape, layout.tensors[i].shape);
    EXPECT_EQ(entry->dtype, "F32");
  }
  EXPECT_EQ((*file)->tensors().front().name, "z");
  EXPECT_EQ((*file)->Find("no"), nullptr);
  const auto values = (*file)->ReadFloats(*(*file)->Find("b"));
  ASSERT_TRUE(values.ok());
  EXPECT_THAT(*values, testing::ElementsAre(10.5f, 12.f, 13.5f, 15.f));
  EXPECT_EQ((*file)->Find("z")->size, 24u);
  float one = 0;
  EXPECT_TRUE((*file)->Read(*(*file)->Find("z"), 8, &one, 4).ok());
  EXPECT_EQ(one, 3.f);
  EXPECT_EQ((*file)->Read(*(*file)->Find("z"), 21, &one, 4).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(SafetensorsTest, ReadsOtherTypesAsFloats) {
  const std::string json = R"({"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                           R"("l":{"dtype":"I64","shape":[1],"data_offsets":[8,16]},)"
                           R"("i":{"dtype":"I32","shape":[1],"data_offsets":[16,20]},)"
                           R"("u":{"dtype":"U8","shape":[2],"data_offsets":[20,22]},)"
                           R"("h":{"dtype":"F16","shape":[1],"data_offsets":[22,24]}})";
  std::string text = FileText(json, 24);
  char* data = text.data() + 8 + json.size();
  const double d = 0.25;
  const int64_t l = -3;
  const int32_t i = 70000;
  std::memcpy(data, &d, 8);
  std::memcpy(data + 8, &l, 8);
  std::memcpy(data + 16, &i, 4);
  data[20] = '\xFF';
  const auto file = OpenText(text);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto read = [&](const char* name) { return (*file)->ReadFloats(*(*file)->Find(name)); };
  EXPECT_THAT(*read("d"), testing::ElementsAre(0.25f));
  EXPECT_THAT(*read("l"), testing::ElementsAre(-3.f));
  EXPECT_THAT(*read("i"), testing::ElementsAre(70000.f));
  EXPECT_THAT(*read("u"), testing::ElementsAre(255.f, 0.f));
  EXPECT_EQ(read("h").status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(read("h").status().message()), HasSubstr("F16"));
}

TEST_F(SafetensorsTest, EveryRuleOfTheFormat) {
  const auto tensor = [](const std::string& name, const std::string& shape,
                         const std::string& offsets) {
    return absl::StrCat("\"", name, R"(":{"dtype":"F32","shape":)", shape, R"(,"data_offsets":)",
                        offsets, "}");
  };
  const std::string a = tensor("a", "[2]", "[0,8]");
  EXPECT_TRUE(OpenText(FileText(absl::StrCat("{", a, "}  "), 8)).ok());
  EXPECT_TRUE(OpenText(FileText("{}", 0)).ok());

  Rejected(absl::StrCat(" {", a, "}"), 8);
  Rejected(absl::StrCat("\xEF\xBB\xBF{", a, "}"), 8);
  Rejected(absl::StrCat("{", a), 8);
  Rejected(absl::StrCat("{", a, "} x"), 8);
  EXPECT_THAT(Rejected(absl::StrCat("{", a, ",", a, "}"), 8), HasSubstr("\"a\""));
  EXPECT_THAT(
      Rejected(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
      HasSubstr("\"dtype\""));
  EXPECT_THAT(Rejected(R"({"__metadata__":{"k":"1","k":"2"}})", 0), HasSubstr("\"k\""));
  EXPECT_THAT(Rejected(R"({"__metadata__":{"k":1}})", 0), HasSubstr("\"k\""));
  EXPECT_THAT(Rejected(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8),
              HasSubstr("\"x\""));
  EXPECT_THAT(Rejected(R"({"a":{"dtype":"F32","shape":[2]}})", 8), HasSubstr("data_offsets"));
  EXPECT_THAT(Rejected(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8),
              HasSubstr("\"F33\""));
  EXPECT_THAT(Rejected(R"({"a":{"dtype":32,"shape":[2],"data_offsets":[0,8]}})", 8),
              HasSubstr("\"a\": dtype"));
  EXPECT_THAT(Rejected(R"({"a":[1]})", 8), HasSubstr("\"a\""));
  EXPECT_THAT(Rejected(R"({"a":7})", 8), HasSubstr("\"a\""));
  EXPECT_THAT(Rejected(absl::StrCat("{", tensor("a", "[-2]", "[0,8]"), "}"), 8),
              AllOf(HasSubstr("shape"), HasSubstr("-2")));
  EXPECT_THAT(Rejected(absl::StrCat("{", tensor("a", "[2.0]", "[0,8]"), "}"), 8), HasSubstr("2.0"));
  EXPECT_THAT(Rejected(absl::StrCat("{", tensor("a", "[[2]]", "[0,8]"), "}"), 8),
              HasSubstr("\"a\": shape"));
  EXPECT_THAT(Rejected(absl::StrCat("{", tensor("a", "[2]", "[0,8,9]"), "}"), 8),
              HasSubstr("data_offsets"));
  EXPECT_THAT(Rejected(absl::StrCat("{", tensor("a", "[2]", "[0]"), "}"), 8),
              HasSubstr("data_offsets"));
  EXPECT_THAT(Rejected(absl::StrCat("{", tensor("a", "[2]", "[8,0]"), "}"), 8),
              HasSubstr("data_offsets"));
  EXPECT_THAT(Rejected(absl::StrCat("{", tensor("a", "[3]", "[0,8]"), "}"), 8),
              HasSubstr("12 bytes"));
  EXPECT_THAT(Rejected(absl::StrCat("{", a, "}"), 7), HasSubstr(" 7"));
  EXPECT_THAT(Rejected(absl::StrCat("{", a, "}"), 9), HasSubstr("byte 8 "));
  EXPECT_THAT(Rejected(absl::StrCat("{", a, ",", tensor("b", "[1]", "[12,16]"), "}"), 16),
              HasSubstr("byte 12 "));
  EXPECT_THAT(Rejected(absl::StrCat("{", a, ",", tensor("b", "[1]", "[4,8]"), "}"), 8),
              HasSubstr("byte 4 "));
}

TEST_F(SafetensorsTest, NumbersThatOverflow) {
  const std::string huge =
      R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})";
  EXPECT_THAT(Rejected(huge, 0), HasSubstr("\"a\""));
  EXPECT_THAT(
      Rejected(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8),
      HasSubstr("\"a\""));
  EXPECT_THAT(
      Rejected(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,99999999999999999999999]}})", 8),
      HasSubstr("data_offsets"));
  EXPECT_THAT(Rejected(R"({"a":{"dtype":"U8","shape":[9223372036854775807],)"
                       R"("data_offsets":[9223372036854775807,18446744073709551614]}})",
                       8),
              HasSubstr("byte 9223372036854775807 "));
  EXPECT_THAT(Rejected(R"({"a":{"dtype":"U8","shape":[9223372036854775807],)"
                       R"("data_offsets":[0,9223372036854775807]}})",
                       8),
              HasSubstr(" 8"));
  EXPECT_THAT(Rejected(R"({"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,8]}})", 8),
              HasSubstr("a.safetensors"));
}

TEST_F(SafetensorsTest, HeadersOfWrongLength) {
  EXPECT_EQ(OpenText("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenText("1234567").status().code(), absl::StatusCode::kInvalidArgument);
  std::string text = FileText("{}", 0);
  text[0] = 3;
  EXPECT_THAT(std::string(OpenText(text).status().message()), HasSubstr(" 2"));
  text[7] = '\x80';
  EXPECT_THAT(std::string(OpenText(text).status().message()), HasSubstr("at most 100000000"));
  EXPECT_EQ(SafetensorsFile::Open(directory_.path()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(SafetensorsFile::Open(path_ + "x").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SafetensorsTest, DeepNestingIsRejectedAtOnce) {
  const std::string deep = R"({"a":{"shape":)" + std::string(1'000'000, '[');
  EXPECT_THAT(Rejected(deep, 0), HasSubstr("\"a\": shape"));
}

TEST_F(SafetensorsTest, FileThatIsCutOffAfterOpeningIsAnError) {
  const SafetensorsLayout layout = LayOutSafetensors({{"a", {100'000}}}, {});
  const auto file = OpenText(layout.header + std::string(400'000, 'x'));
  ASSERT_TRUE(file.ok()) << file.status();
  WriteAll(path_, layout.header);
  const auto values = (*file)->ReadFloats((*file)->tensors()[0]);
  EXPECT_EQ(values.status().code(), absl::StatusCode::kDataLoss) << values.status();
}

// A header that is accepted lies in the file without holes, whatever was done to its text.
void ExpectSound(const std::vector<TensorEntry>& tensors, uint64_t data_begin, uint64_t file_size) {
  uint64_t end = data_begin;
  for (const TensorEntry& tensor : tensors) {
    ASSERT_EQ(tensor.begin, end);
    uint64_t size = SafetensorsElementSize(tensor.dtype);
    ASSERT_GT(size, 0u);
    for (const int64_t extent : tensor.shape) size *= static_cast<uint64_t>(extent);
    ASSERT_EQ(tensor.size, size);
    end += size;
  }
  ASSERT_EQ(end, file_size);
}

TEST(SafetensorsFuzzTest, MutatedHeadersAreRejectedOrSound) {
  const std::string original =
      LayOutSafetensors({{"ab", {2, 3}}, {"c", {4}}, {"d", {}}}, {{"k", "v"}}).header.substr(8);
  const uint64_t data_size = 4 * 11;
  const std::vector<std::string> pieces = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ":",
                                           ",",
                                           "\"",
                                           "\"c\"",
                                           "\"dtype\"",
                                           "\"F32\"",
                                           "\"shape\"",
                                           "[0,24]",
                                           "\"data_offsets\"",
                                           "\"__metadata__\"",
                                           "0",
                                           "-1",
                                           "1e5",
                                           "18446744073709551615",
                                           "null",
                                           "\\u0000",
                                           "\xFF",
                                           " "};
  int accepted = 0;
  for (uint32_t seed = 1; seed <= 20'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::string text = original;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, pieces[random() % pieces.size()]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
      }
      if (text.empty()) text.push_back(original[0]);
    }
    const uint64_t data_begin = 8 + text.size();
    const auto tensors = ParseSafetensorsHeader(text, data_begin, data_begin + data_size);
    if (tensors.ok()) {
      ++accepted;
      ASSERT_NO_FATAL_FAILURE(ExpectSound(*tensors, data_begin, data_begin + data_size));
    } else {
      ASSERT_FALSE(tensors.status().message().empty());
    }
  }
  // Changes of a name, say, are not errors; without any the loop would test little.
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 15'000);
}

}  // namespace
}  // namespace shoal
