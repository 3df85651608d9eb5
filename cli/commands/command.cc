#include "cli/commands/command.h"

#include <cstdio>
#include <string>

#include "common/base/text/printable.h"
#include "common/daemon/process/exit_code.h"
#include "common/daemon/settings/command_line.h"

namespace shoal {

absl::Status PrintReport(const std::string& text) {
  return PrintOut(PrintableLines(text, text.size()));
}

int ReportStatus(const absl::Status& status) {
  const std::string text(status.message());
  if (!status.ok()) std::fprintf(stderr, "shoal: %s\n", PrintableLines(text, text.size()).c_str());
  return ExitCodeOf(status);
}

}  // namespace shoal
