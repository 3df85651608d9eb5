#include "cli/reports/layers_document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace shoal {
namespace {

TEST(LayersDocumentTest, TheDocumentIsWhatTheCodeSays) {
  std::ifstream file(SHOAL_SOURCE_DIR "/docs/layers.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, LayersDocument()) << "to write it: shoal model layers > docs/layers.md";
}

}  // namespace
}  // namespace shoal
