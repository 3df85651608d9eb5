#pragma once

#include <string>

#include "tests/common/base/file_content.h"

namespace shoal {

// Returns the text of a page in docs/. Only a test with READS_SOURCE finds it.
inline std::string DocumentText(const std::string& page) {
  return FileContent(std::string(SHOAL_SOURCE_DIR) + "/docs/" + page);
}

}  // namespace shoal
