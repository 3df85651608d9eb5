#include "cli/train/resume_command.h"

#include "absl/strings/str_cat.h"
#include "common/base/text/shell_word.h"

namespace shoal {

std::string ResumeCommand(const TrainOptions& options) {
  const TrainOptions usual;
  std::string command =
      absl::StrCat(ShellWord(options.program), " train ", ShellWord(options.job_path));
  const auto add = [&command](const char* flag, const std::string& value) {
    absl::StrAppend(&command, " ", flag, " ", value);
  };
  if (options.workers != usual.workers) add("--workers", absl::StrCat(options.workers));
  if (options.ps != usual.ps) add("--ps", absl::StrCat(options.ps));
  if (options.run_dir != usual.run_dir) add("--run_dir", ShellWord(options.run_dir));
  if (options.threads != usual.threads) add("--threads", absl::StrCat(options.threads));
  if (options.device != usual.device) add("--device", options.device);
  if (options.tf32) absl::StrAppend(&command, " --tf32");
  if (options.deterministic) absl::StrAppend(&command, " --deterministic");
  if (options.tls) absl::StrAppend(&command, " --tls");
  if (options.max_restarts != usual.max_restarts) {
    add("--max_restarts", absl::StrCat(options.max_restarts));
  }
  for (const JobOverride& each : options.overrides) {
    add(each.flag.c_str(),
        ShellWord(each.flag == "--set" ? each.field + "=" + each.value : each.value));
  }
  return command;
}

}  // namespace shoal
