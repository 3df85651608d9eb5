// docs/security.md shows the table of permissions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/security/permissions.h"
#include "tests/common/json/document_text.h"

namespace shoal {
namespace {

TEST(SecurityDocTest, EveryMethodHasItsRow) {
  std::set<std::string> rows;
  for (const Permission& permission : Permissions()) {
    rows.insert("| `" + std::string(permission.method) + "` | " + permission.servers.ToString() +
                " | " + permission.clients.ToString() + " |");
  }
  const std::string document = DocumentText("security.md");
  const size_t begin = document.find("\n## Permissions\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = document.substr(begin, document.find("\n## ", begin + 1) - begin);
  size_t documented = 0;
  for (size_t at = 0; (at = section.find("\n| `/", at)) != std::string::npos; ++at) ++documented;
  EXPECT_EQ(documented, rows.size());
  for (const std::string& row : rows) EXPECT_THAT(section, testing::HasSubstr("\n" + row + "\n"));
}

}  // namespace
}  // namespace shoal
