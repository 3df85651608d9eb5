#include "cli/reports/metrics_document.h"

#include <gtest/gtest.h>

#include "tests/common/json/document_text.h"

namespace shoal {
namespace {

TEST(MetricsDocumentTest, TheDocumentIsWhatTheCodeSays) {
  EXPECT_EQ(DocumentText("metrics.md"), MetricsDocument())
      << "to write it: shoal metrics > docs/metrics.md";
}

}  // namespace
}  // namespace shoal
