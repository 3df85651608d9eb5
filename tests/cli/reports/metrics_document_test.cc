#include "cli/reports/metrics_document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace shoal {
namespace {

TEST(MetricsDocumentTest, TheDocumentIsWhatTheCodeSays) {
  std::ifstream file(SHOAL_SOURCE_DIR "/docs/metrics.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, MetricsDocument()) << "to write it: shoal metrics > docs/metrics.md";
}

}  // namespace
}  // namespace shoal
