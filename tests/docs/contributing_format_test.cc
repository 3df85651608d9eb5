#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/job/data_source_reader.h"
#include "tests/worker/input/formats/data_file_content.h"
#include "worker/input/dataset/data_formats.h"

// The data format that docs/contributing/adding-a-kind.md shows, made as it says.

namespace shoal {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class ContributingFormatTest : public DataFileTest {
 protected:
  // As a job file names it.
  DataSource Source() {
    JsonErrors errors("");
    DataSource source = ReadDataSource({{"format", "raw"}, {"path", Path("rows.raw")}},
                                       "$.data.training", {}, &errors);
    EXPECT_TRUE(errors.ToStatus().ok()) << errors.ToStatus();
    return source;
  }
};

TEST_F(ContributingFormatTest, IsReadAsAJobFileNamesIt) {
  Write("rows.raw", Stored<float>({1, 2, 3, 4, 5, 6}, false));
  const auto dataset = OpenDataset(Source(), {{.name = "x", .shape = {2}}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ((*dataset)->size(), 2u);
  std::vector<float> x(2), label(1);
  ASSERT_TRUE((*dataset)->Read(1, std::vector<FeatureSpan>{x}, label).ok());
  EXPECT_EQ(x, (std::vector<float>{4, 5}));
  EXPECT_EQ(label[0], 6);
  ASSERT_TRUE((*dataset)->ReadLabel(0, label).ok());
  EXPECT_EQ(label[0], 3);
}

TEST_F(ContributingFormatTest, SaysWhatIsWrongAndWhatIsThere) {
  Write("rows.raw", std::string(20, '\0'));
  const auto dataset = OpenDataset(Source(), {{.name = "x", .shape = {2}}});
  EXPECT_THAT(std::string(dataset.status().message()),
              AllOf(HasSubstr(Path("rows.raw")), HasSubstr("byte 20"), HasSubstr("12 bytes")));
  EXPECT_THAT(DataFormatNames(), Contains("raw"));
  const auto report = FindDataFormat("raw")->inspect(Source());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->lines, Contains("5 numbers"));
}

}  // namespace
}  // namespace shoal
