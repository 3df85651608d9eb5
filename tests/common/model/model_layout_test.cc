#include "common/model/model_layout.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(ModelLayoutTest, VariablesFollowEachOtherAligned) {
  const ModelLayout layout({{.name = "a", .shape = {3, 5}},
                            {.name = "b", .shape = {}},
                            {.name = "c", .shape = {32}},
                            {.name = "d", .shape = {17}}});
  ASSERT_EQ(layout.variables.size(), 4u);
  const std::vector<int64_t> offsets = {0, 16, 32, 64};
  const std::vector<int64_t> sizes = {15, 1, 32, 17};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(layout.variables[i].offset, offsets[i]);
    EXPECT_EQ(layout.variables[i].size, sizes[i]);
  }
  EXPECT_EQ(layout.size, 96);
}

TEST(ModelLayoutTest, NoVariables) { EXPECT_EQ(ModelLayout(std::vector<Variable>()).size, 0); }

}  // namespace
}  // namespace shoal
