#include <gmock/gmock.h>

#include "tests/common/base/fails_with.h"
#include "tests/worker/input/formats/format_test.h"
#include "worker/input/dataset/data_formats.h"
#include "worker/input/formats/csv_reader.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// All rows, fields between '|', or the error.
std::string ReadAll(const std::string& text, char delimiter = ',') {
  size_t position = 0;
  CsvReader reader(
      [&](std::span<char> out) -> absl::StatusOr<size_t> {
        const size_t count = text.copy(out.data(), out.size(), position);
        position += count;
        return count;
      },
      delimiter);
  std::string all;
  std::vector<std::string> fields;
  for (;;) {
    const absl::StatusOr<bool> more = reader.Next(&fields);
    if (!more.ok()) return std::string(more.status().message());
    if (!*more) return all;
    all += std::to_string(reader.line()) + ":";
    for (const std::string& field : fields) all += field + "|";
    all += " ";
  }
}

TEST(CsvReaderTest, ReadsWhatRfc4180Has) {
  EXPECT_EQ(ReadAll("a,b\r\n1,2\r\n"), "1:a|b| 2:1|2| ");
  EXPECT_EQ(ReadAll("\xef\xbb\xbf"
                    "a,,\n,b"),
            "1:a||| 2:|b| ");
  EXPECT_EQ(ReadAll("\"a,\"\"x\"\"\nb\",c\n\n\nd\n"), "1:a,\"x\"\nb|c| 5:d| ");
  EXPECT_EQ(ReadAll("a;b\tc", ';'), "1:a|b\tc| ");
  EXPECT_EQ(ReadAll("\"\"\n"), "1:| ");
  EXPECT_EQ(ReadAll(""), "");
  const std::string wide(300'000, 'x');  // longer than the buffer
  EXPECT_EQ(ReadAll(wide + "," + wide), "1:" + wide + "|" + wide + "| ");
}

TEST(CsvReaderTest, SaysOnWhichLineSomethingIsWrong) {
  EXPECT_THAT(ReadAll("a\nb\"c\n"), HasSubstr("line 2: "));
  EXPECT_THAT(ReadAll("a\n\"b\nc"), AllOf(HasSubstr("line 3: "), HasSubstr("line 2")));
  EXPECT_THAT(ReadAll("\"a\"b"), HasSubstr("line 1: "));
  EXPECT_THAT(ReadAll("a\rb"), HasSubstr("line 1: "));
  EXPECT_THAT(ReadAll("\"" + std::string(kMaxCsvRowBytes, 'x')), HasSubstr("16777216"));
  EXPECT_THAT(ReadAll(std::string(kMaxCsvFields, ',')), HasSubstr("1048576"));
}

class CsvTest : public FormatTest {
 protected:
  CsvTest() {
    source_.format = "csv";
    source_.paths = {Path("data.csv")};
    source_.labels = "y";
    inputs_ = {{.name = "x", .shape = {2}}};
  }
};

TEST_F(CsvTest, AllColumnsButTheLabelAreTheInput) {
  Write("data.csv", "a,y,b\n1,7,2.5\n-3, 8 ,+4e1\n");
  EXPECT_THAT(Rows(), ElementsAre("1 2.5 : 7", "-3 40 : 8"));
  Write("data.csv", Gzip("a,y,b\n1,7,2.5\n"));
  EXPECT_THAT(Rows(), ElementsAre("1 2.5 : 7"));
}

// As pandas writes the index.
TEST_F(CsvTest, AColumnWithoutANameIsAnInputToo) {
  Write("data.csv", ",a,y\n0,1,7\n1,-3,8\n");
  EXPECT_THAT(Rows(), ElementsAre("0 1 : 7", "1 -3 : 8"));
}

TEST_F(CsvTest, AColumnMaySayWhatARowCounts) {
  Write("data.csv", "a,y,w,b\n1,7,0.5,2\n3,8,2,4\n");
  source_.weights = "w";
  EXPECT_THAT(Rows(), ElementsAre("1 2 : 7", "3 4 : 8"));  // not asked for, and no input
  source_.weights = "v";
  source_.features = {{"", {"a", "b"}}};
  EXPECT_THAT(Rows(), ElementsAre("1 2 : 7", "3 4 : 8"));  // nor need it be there
  source_.weights = "w";
  source_.features.clear();
  inputs_.push_back({.name = "sample weights", .type = FeatureType::kWeight});
  EXPECT_THAT(Rows(), ElementsAre("1 2 | 0.5 : 7", "3 4 | 2 : 8"));
  source_.features = {{"", {"b", "a"}}};
  EXPECT_THAT(Rows(), ElementsAre("2 1 | 0.5 : 7", "4 3 | 2 : 8"));
  source_.weights = "v";
  EXPECT_THAT(ErrorOf(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"data.csv", "\"v\"", "a, y, w, b"}));
}

TEST_F(CsvTest, WhereNoFeaturesAreNamedTheColumnsTakenAre) {
  Write("data.csv", "a,b,y,kind\n1,2,3,4\n");
  const std::string features = ": a, b, kind. ", flag = "--set 'data.training.features=[...]'";
  EXPECT_THAT(ErrorOf(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"(None, 3)", features, flag}));
  Write("data.csv", "a,b,y,kind\n1,2,3,red\n");
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss,
                                   {"line 2, column kind: \"red\"", features, flag}));
  source_.features = {{"", {"a", "kind"}}};
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss, {"line 2, column kind"}));
  EXPECT_THAT(ErrorOf().ToString(), testing::Not(HasSubstr("features=")));
}

TEST_F(CsvTest, OneValueThatIsMissingIsNoQuestionOfFeatures) {
  for (const char* value : {"", "?"}) {
    Write("data.csv", std::string("a,b,y\n1,2,3\n1,") + value + ",3\n");
    EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss, {"line 3, column b: "}));
    EXPECT_THAT(ErrorOf().ToString(), testing::Not(HasSubstr("features")));
  }
}

TEST_F(CsvTest, AFirstRowWithoutTheNamesIsExplained) {
  Write("data.csv", "1,2,3\n4,5,6\n");
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kInvalidArgument,
                                   {"\"y\"", "1, 2, 3", "\"header\": false"}));
  for (const auto& [delimiter, shown] : {std::pair(";", ";"), {"\t", "\\t"}}) {
    Write("data.csv", absl::StrCat("a", delimiter, "b", delimiter, "y\n"));
    EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kInvalidArgument,
                                     {absl::StrCat("\"delimiter\": \"", shown, "\"")}));
  }
  Write("data.csv", "a,b,c\n4,5,6\n");
  EXPECT_THAT(ErrorOf().ToString(),
              AllOf(testing::Not(HasSubstr("header")), testing::Not(HasSubstr("delimiter"))));
}

TEST_F(CsvTest, ColumnsAreThoseOfTheInputWhereNoneAreNamed) {
  Write("data.csv", "b,y,w,a\n1,2,3,4\n");
  source_.weights = "w";
  EXPECT_THAT(*ColumnsOf(source_), ElementsAre("b", "a"));
  source_.paths = {Path("none.csv")};
  EXPECT_EQ(ColumnsOf(source_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CsvTest, FilesThatAreMissingAreAllNamed) {
  source_.paths = {Path("1.csv"), Path("2.csv"), Path("*.tsv")};
  EXPECT_THAT(ErrorOf(),
              FailsWith(absl::StatusCode::kNotFound, {Path("1.csv"), Path("2.csv"), "*.tsv"}));
}

TEST_F(CsvTest, ColumnsAreChosenByNameAndOtherColumnsMayHoldAnything) {
  Write("data.csv", "note,y,a,b,c,note\nx,1,2,3,4,x\n\"y, z\",5,6,7,8,\n");
  source_.features = {{"", {"c", "a"}}};
  EXPECT_THAT(Rows(), ElementsAre("4 2 : 1", "8 6 : 5"));
  source_.features = {{"id", {"b"}}, {"x", {"a", "c"}}};
  inputs_.push_back({.name = "id", .shape = {1}, .type = FeatureType::kInteger});
  EXPECT_THAT(Rows(), ElementsAre("2 4 | 3 : 1", "6 8 | 7 : 5"));
}

// The second of the label's name would be an input, and tell the model the label.
TEST_F(CsvTest, ANameThatTwoColumnsHaveIsRejected) {
  const std::string path = Write("data.csv", "y,a,b,y\n1,2,3,1\n");
  inputs_[0].shape = {3};
  EXPECT_THAT(ErrorOf(),
              FailsWith(absl::StatusCode::kInvalidArgument, {path, "columns 0 and 3", "\"y\""}));
  Write("data.csv", ",a,,y\n1,2,3,7\n");
  EXPECT_THAT(Rows(), ElementsAre("1 2 3 : 7"));  // these have none
}

TEST_F(CsvTest, WithoutAHeaderColumnsHaveNumbers) {
  Write("1.csv", "1;2;3\n");
  Write("2.csv", "4;5;6\n");
  source_.paths = {Path("?.csv")};
  source_.header = false;
  source_.delimiter = ";";
  source_.labels = "2";
  EXPECT_THAT(Rows(), ElementsAre("1 2 : 3", "4 5 : 6"));
}

TEST_F(CsvTest, WrongFilesAreNamedWithTheLine) {
  const std::string path = Write("data.csv", "a,y,b\n1,2,3\n1,2\n");
  const auto is_damaged = [](const std::string& where) {
    return FailsWith(absl::StatusCode::kDataLoss, {where});
  };
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss, {path + ": line 3: 2 ", "3"}));
  Write("data.csv", "a,y,b\n1,2,3\n1,2,red\n");
  EXPECT_THAT(ErrorOf(), is_damaged(path + ": line 3, column b: \"red\""));
  for (const char* bad : {"", "nan", "inf", "1e99", "1 2", "0x10", "+", "+-3", "++3", "+ 3"}) {
    Write("data.csv", std::string("a,y,b\n") + bad + ",2,3\n");
    EXPECT_THAT(ErrorOf(), is_damaged(path + ": line 2, column a: ")) << bad;
  }
  Write("data.csv", "a,z,b\n1,2,3\n");
  EXPECT_THAT(ErrorOf(),
              FailsWith(absl::StatusCode::kInvalidArgument, {path + ": ", "\"y\"", "a, z, b"}));
  Write("data.csv", "a,y,b\n");
  EXPECT_THAT(ErrorOf(), is_damaged(path + ": "));
  Write("data.csv", "");
  EXPECT_THAT(ErrorOf(), is_damaged(path + ": "));
  Write("data.csv", "a,y\n1,2\n");
  EXPECT_THAT(ErrorOf(),
              FailsWith(absl::StatusCode::kInvalidArgument, {path, "(None, 1)", "(None, 2)"}));
  Write("data.csv", "a,y,b\n1,2,3\n");
  Write("other.csv", "a,y,c\n1,2,3\n");
  source_.paths.push_back(Path("other.csv"));
  EXPECT_THAT(ErrorOf(), is_damaged(Path("other.csv") + ": "));
}

}  // namespace
}  // namespace shoal
