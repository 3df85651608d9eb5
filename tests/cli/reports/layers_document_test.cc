#include "cli/reports/layers_document.h"

#include <gtest/gtest.h>

#include "tests/common/json/document_text.h"

namespace shoal {
namespace {

TEST(LayersDocumentTest, TheDocumentIsWhatTheCodeSays) {
  EXPECT_EQ(DocumentText("layers.md"), LayersDocument())
      << "to write it: shoal model layers > docs/layers.md";
}

}  // namespace
}  // namespace shoal
