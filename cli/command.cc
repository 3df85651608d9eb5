#include "cli/command.h"

#include <cstdio>
#include <string>

#include "common/base/printable.h"
#include "common/daemon/exit_code.h"

namespace shoal {

void PrintReport(const std::string& text) {
  std::fputs(PrintableLines(text, text.size()).c_str(), stdout);
  std::fflush(stdout);
}

int ReportStatus(const absl::Status& status) {
  const std::string text(status.message());
  if (!status.ok()) std::fprintf(stderr, "shoal: %s\n", PrintableLines(text, text.size()).c_str());
  return ExitCodeOf(status);
}

}  // namespace shoal
